// Package ratelimit decides whether a client may have another token.
//
// [Settings] is the configuration that operators write. [Compile] validates it and returns an
// immutable [Compiled]. Its For method returns the limits of one client, prepared as [Limits] of
// [Rule]. [Frames] has the arithmetic of an estimate, and a [Decision] the result for one request.
// Package counting holds the counts of every key (a client and a user), and decides by them.
//
// The package does no I/O, and callers pass in the time. Every comparison that decides is between
// integers (milliseconds and requests), so a decision is exact and repeatable.
//
// # One request, worked through
//
// Take a limit of 7 requests per minute, with one frame per window. Five requests were counted in
// the minute from 12:00, and three since 12:01. At 12:01:18 the window of the last 60 seconds
// covers 42 of the first minute's 60 seconds:
//
//	estimate = 3 + 5 x 42/60 = 6.5
//	floor(6.5) + 1 = 7 <= 7, so one more passes and is counted: 4 + 3.5 = 7.5
//	floor(7.5) + 1 = 8 >  7, so the next one is denied
//
// RetryAfter of the denied request is the time until the estimate is below 7. This happens when
// less than 3 of the first minute's 5 requests are inside the window: 5 x s/60 < 3, where s < 36 is
// the number of seconds of that minute that the window still covers. So the estimate is below 7
// from 12:01:24.001 on, 6.001 seconds away, and the Retry-After field is 7.
package ratelimit
