// Package ratelimit decides whether a client may have another token.
//
// A [Settings] value holds what operators want; [Compile] turns it into
// immutable [Policies], and [Policies.For] finds what applies to a client.
// [Counters] keeps the counts of every key, a client and a user, and
// [Counters.Take] checks and counts in one atomic step: with a limit of L and
// any number of goroutines exactly L requests pass.
//
// The package never reads a clock, never waits, and never does I/O: now is an
// argument, and what other processes counted comes in through [Sync], which
// internal/syncer uses. All arithmetic that decides is done with integers, in
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
// Its RetryAfter is the time until the estimate is below 7, which is when less
// than 3 of the first minute's 5 are still inside the window: 5 x s/60 < 3, with
// s the seconds that are left of it, s < 36. That is from 12:01:24.001 on,
// 6.001 seconds away, and the Retry-After field says 7.
//
// # A counter and its document
//
// A counter is one key under one limit. Of each frame it holds g, known to be in
// the document that all processes share; p, in a write whose outcome is not
// known; and i, admitted since and not yet written. A decision counts all three.
// Between exchanges with the store a counter is in one of these states:
//
//	| state    | it waits for                                         | it leaves with                  |
//	| quiet    | nothing                                              | the next request                |
//	| watching | the time at which its document should be read        | that time, or an admitted one   |
//	| lazy     | the time at which its counts are written at last     | that time, or the due rule      |
//	| urgent   | its spacing, or the back-off of a pending write      | the next exchange               |
//	| busy     | the outcome of the exchange that is under way        | [Sync.Finish], into any of them |
//
// The walk of a count is: [Counters.Take] (take.go) adds it to i and hands the
// counter to the syncer (queue.go); [Sync.Due] plans it (plan.go); [Sync.Begin]
// makes p of i (sync.go); [Sync.Finish] takes over the document and makes g of p
// (merge.go), and notes what has to be done to the document (chores.go). What a
// counter knows from elsewhere than its document is apart (carried.go).
//
// Memory is flat: shard.go finds a key, slab.go holds the records.
package ratelimit
