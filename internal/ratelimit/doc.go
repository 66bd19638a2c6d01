// Package ratelimit decides whether a client may have another token.
//
// [Settings] are what operators configure. [Compile] validates them and returns an immutable
// [Compiled], whose For method returns what applies to a client. [Counters] holds the counts of
// every key, a client and a user; [Counters.Take] decides and counts in one atomic step: with a
// limit of L exactly L requests pass, whatever the number of goroutines.
//
// The package does no I/O, and the time is an argument; only strict limits read it again, under the
// lock, where [SyncOptions] has a clock. Decisions are made at once, but for one: a request under a
// strict limit that lacks permits waits in [Counters.Await] for at most the LeaseWait of the limit. What
// other processes counted arrives through [Sync], which internal/syncer uses. Every comparison that
// decides is between integers, of milliseconds and requests, so an answer is exact and repeatable.
//
// # One request, worked through
//
// A limit of 7 requests per minute, one frame per window. In the minute from 12:00 five requests
// were counted, since 12:01 three. At 12:01:18 the window of the last 60 seconds covers 42 of the
// first minute's 60 seconds:
//
//	estimate = 3 + 5 x 42/60 = 6.5
//	floor(6.5) + 1 = 7 <= 7, so one more passes and is counted: 4 + 3.5 = 7.5
//	floor(7.5) + 1 = 8 >  7, so the next one is denied
//
// Its RetryAfter is the time until the estimate is below 7, which is when less than 3 of the first
// minute's 5 are still inside the window: 5 x s/60 < 3, where s < 36 is the number of seconds left
// of that minute. That is from 12:01:24.001 on, 6.001 seconds away, and the Retry-After field is 7.
//
// # Strict limits
//
// A strict limit never admits more than its requests in any window, on all processes together,
// whatever is lost or late. It admits from permits alone (lease.go). Three invariants make it so:
//
//   - A permit is counted before it is used. A write takes permits for one frame, on the condition that
//     the document still has the version that had room for them (permits.go), and so does one that
//     gives them back. Room is what all frames
//     leave of which any part can be in one window with that frame; they count in full.
//   - A permit is used in its frame or never: only while the present time, with all that it may be off
//     the time of the store, is inside the frame. What is left is given back, or stays counted.
//   - An outcome that is unknown counts as taken in the document, but the permits are not held until the
//     document shows the write. One that the document can no longer take is void.
//
// So a fault makes a strict limit stricter, never looser: a killed process leaves its permits counted
// until their frame has left every window. A limit of 10 in ten minutes has frames of 10 s; a process
// with a request to admit takes one permit of the present frame, and admits when the write is
// confirmed. Of a busier key it takes as many as it needs until the frame ends by its recent rate, but
// at most the room that is left, divided by twice the number of processes. In dry-run no permits are
// taken: see forDryRun (rule.go).
//
// # A counter and its document
//
// A counter is one key under one limit. For each frame it holds three counts, and a decision uses
// their sum:
//
//	known (g)  what the document has, which all processes share
//	pending    what is in a write whose outcome is not yet known
//	unclaimed  what was admitted since and is in no write
//
// Pending and unclaimed together are unflushed (i): the document is not known to have them. Between
// exchanges with the store a counter is in one of these states:
//
//	| state    | it waits for                                         | it leaves with                  |
//	| quiet    | nothing                                              | the next request                |
//	| watching | the time at which its document should be read        | that time, or an admitted one   |
//	| lazy     | the time at which its counts are written at last     | that time, or the due rule      |
//	| urgent   | its spacing, or the back-off of a pending write      | the next exchange               |
//	| busy     | the outcome of the exchange that is under way        | [Sync.Finish], into any of them |
//
// A count moves like this: [Counters.Take] (take.go) adds it to unclaimed and queues the counter
// for the syncer (queue.go); [Sync.Due] plans an exchange (plan.go); [Sync.Begin] moves unclaimed
// to pending (sync.go); [Sync.Finish] takes over the document and moves pending to known
// (merge.go). What the next write has to repair or remove in the document is in chores.go, and what
// a counter counts besides its document in carried.go.
//
// Memory is flat: shard.go finds a key, slab.go holds the records.
package ratelimit
