// Package counting counts requests and decides by the counts, in memory.
//
// [Counters] holds the counts of every key (a client and a user). [Counters.Take] decides and counts
// in one atomic step: with a limit of L, exactly L requests pass, however many goroutines call it.
//
// The package does no I/O, and callers pass in the time. Strict limits are the exception: they read
// the clock of [SyncOptions] again while they hold the lock. Decisions do not block, with two
// exceptions in [Counters.Await]: a request under a strict limit that lacks permits waits for at most
// the LeaseWait of the limit, and a request of a key that this process has not read yet, for at most
// 250 ms. Counts from other processes arrive through [Sync], which internal/syncer uses.
//
// # Strict limits
//
// A strict limit never admits more than its requests in any window, on all processes together, even
// if processes fail or messages are lost or late. It admits only from permits (lease.go). Three
// invariants guarantee this:
//
//   - A permit is counted in the document before it is used. A write takes permits for one frame.
//     It is conditional on the version of the document that had room for them (lease.go). A write
//     that gives permits back is conditional too. The room for a frame is the limit minus the full
//     counts of all frames that can share a window with it.
//   - A permit is used only in its frame: the present time, plus or minus its uncertainty against
//     the time of the store, must be inside the frame. Unused permits are given back, or stay
//     counted.
//   - If the outcome of a write is unknown, its permits count as taken, but no request may use them
//     until the document shows the write. A write that the document can no longer accept is void.
//
// So a fault makes a strict limit stricter, never looser. For example, the permits of a killed
// process stay counted until their frame has left every window. A limit of 10 in ten minutes has
// frames of 10 s. When a process has a request to admit, it takes one permit of the present frame
// and admits the request once the write is confirmed. For a busier key it takes as many permits as
// the key will need until the end of the frame, judging by its recent rate. But it takes at most
// the remaining room divided by twice the number of processes. In dry-run no permits are taken: see
// forDryRun in package ratelimit.
//
// # A counter and its document
//
// A counter is one key under one limit. For each frame it holds three counts, and a decision uses
// their sum:
//
//	known (g)  the count in the document, which all processes share
//	pending    the count in a write with an unknown outcome
//	unclaimed  requests admitted since then, in no write yet
//
// Pending and unclaimed together are unflushed (i): the document may not have them. Between
// exchanges with the store a counter is in one of these states:
//
//	| state    | it waits for                                         | it leaves with                  |
//	| quiet    | nothing                                              | the next request                |
//	| watching | the time at which its document should be read        | that time, or an admitted one   |
//	| lazy     | the time of its first read, or to write its counts   | that time, or the due rule      |
//	| urgent   | its spacing, or the back-off of a pending write      | the next exchange               |
//	| busy     | the outcome of the exchange that is under way        | [Sync.Finish], into any of them |
//
// A count moves like this: [Counters.Take] (decide.go) adds it to unclaimed and queues the counter
// for the syncer, and [Sync.Due] plans an exchange (plan.go). [Sync.Begin] moves unclaimed
// to pending (sync.go). [Sync.Finish] merges the document and moves pending to known (merge.go).
// Repairs that the next write makes in the document are in repairs.go. Counts that a counter has in
// addition to its document are in overflow.go.
package counting
