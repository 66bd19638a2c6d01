// Package ratelimit decides whether a client may have another token.
//
// A [Settings] value says what operators want; [Compile] turns it into
// immutable [Policies], and [Policies.For] finds what applies to a client.
// [Counters] keeps the counts of every key, a client and a user, and
// [Counters.Take] checks and counts in one atomic step: with a limit of L and
// any number of goroutines exactly L requests pass.
//
// The package never reads a clock, never waits, and never does I/O: now is an
// argument, and what other processes counted comes in through the operations
// that internal/syncer calls. All arithmetic that decides is done with integers, in
// milliseconds and requests, so an answer is exact and repeatable.
//
// # One request, worked through
//
// A limit of 7 requests per minute, one frame per window. In the minute from
// 12:00 five requests were counted, since 12:01 three. At 12:01:18 the window
// of the last 60 seconds covers 42 of the first minute's 60 seconds:
//
//	estimate = 3 + 5 x 42/60 = 6.5
//	floor(6.5) + 1 = 7 <= 7, so one more passes and is counted: 4 + 3.5 = 7.5
//	floor(7.5) + 1 = 8 >  7, so the next one is denied
//
// It is told to come back as soon as the estimate is below 7, which is when
// less than 3 of the first minute's 5 are still inside the window: 5 x s/60 < 3,
// with s the seconds that are left of it, s < 36. That is from 12:01:24.001 on,
// 6.001 seconds away, and the Retry-After field says 7.
package ratelimit
