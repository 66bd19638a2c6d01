// Package syncer shares the counts of one process with all others through a store, in the
// background.
//
// Each instance decides on its own with [counting.Counters]. The syncer writes the requests
// admitted here and reads the requests admitted by other instances: soon for a key near its limit,
// seldom for a key far below it. Only requests under strict limits wait for it: it leases their
// permits, see [counting.Counters.Await]. While the store is unavailable, decisions are made from
// memory, and requests under strict limits are denied.
//
// Every count is written exactly once, despite lost requests, lost replies, conflicts and restarts
// of the store. [exchange.Store] has the conditions for this. A write depends either on the version and a
// random etag of the document, or on the sequence of this process in it. It is repeated unchanged
// until its outcome is known.
//
// # One exchange
//
// An exchange is one round trip to the store for up to [exchange.MaxBatch] counters. loop.go takes the
// counters that are due from the queue (queue.go), calls the store once for all of them, and lets
// exchange.go begin a task for each before the call and complete it afterwards. Completing a task
// returns when its counter is due next. [counting.Sync] decides what a task does. record.go
// converts the record that the store has read into the form that the counters need.
//
// Only the loop, the calls of the store, heartbeats and Stop wait. Tests run whole clusters in the
// simulated time of testing/synctest.
//
// Counters of strict limits have their own queue and round trips, with a deadline that does not
// grow with the number of counters. A lost reply leaves the keys of its round trip without permits
// for less than half a second, and does not affect other keys. Three failures in a row are an
// outage for strict limits. Calls that fail while they are under way together count as one failure.
//
// health.go tracks the outcome of the calls. When calls fail, outage.go lets limits be decided by
// their OnOutage. heartbeat.go compares the clocks and finds which instances are alive. identity.go
// holds the ID and the sequences that this process writes under.
//
// # Two instances, worked through
//
// A and B share a counter. Its document has the count 1. A admits one request and B three. B writes
// first. Version and etag are still as B last read them, so the store adds 3 and the document has
// 4. A's write is a conflict, because the etag has changed. A writes again, now on the condition
// that the document does not have its sequence yet, and reads the document in the same exchange: 5,
// its own request included. Until then A has decided with 1 + 1, and from then on with 5. It never
// decided with less than it had admitted itself.
package syncer
