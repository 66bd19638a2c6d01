// Package syncer shares the counts of one process with all others through a
// store, in the background.
//
// Each instance decides on its own with [ratelimit.Counters]. The syncer writes what
// was admitted here, and reads what was admitted elsewhere: soon for a key
// near its limit, seldom for one far from it. No request ever waits for it,
// and while the store is away decisions go on from memory.
//
// Every count is written exactly once, through lost requests, lost replies,
// conflicts and restarts of the store. What makes it so is in [Store]: a write
// either depends on an etag that is used once, or on the sequence number of
// this process in the document, and is repeated unchanged until its outcome is known.
//
// # Two instances, worked through
//
// A and B share a counter whose document holds 1. A admits one request and B
// three. B writes first: version and etag are what it knows, so the store
// adds 3 and the document holds 4. A's write is refused, because the etag has
// changed. A reads the document, finds 4 and that its own sequence is not
// among the writers, and writes again: 5. Meanwhile A has decided with 1 + 1 and then
// with 4 + 1, never with less than it had admitted itself.
package syncer
