// Package syncer shares the counts of one process with all others through a store, in the
// background.
//
// Each instance decides on its own with [ratelimit.Counters]. The syncer writes what was admitted
// here and reads what was admitted elsewhere: soon for a key near its limit, seldom for one far
// from it. No request waits for it but those under strict limits, whose permits it leases: see
// [ratelimit.Counters.Await]. While the store is away decisions are made from memory, and requests
// under strict limits are denied.
//
// Every count is written exactly once, through lost requests, lost replies, conflicts and restarts
// of the store. [Store] has the conditions that make it so: a write depends either on the version
// and a random etag of the document, or on the sequence of this process in it, and is repeated
// unchanged until its outcome is known.
//
// # One exchange
//
// An exchange is one round trip to the store for up to [MaxBatch] counters. loop.go takes the counters
// that are due from the queue (queue.go), has a task begun for each, calls the store once for all of
// them, and has them completed. exchange.go begins and completes: each task returns when its counter is
// due next. [ratelimit.Sync] decides what a task does. record.go turns what the store has read into what
// the counters need.
//
// Nothing waits but the loop, the calls of the store, heartbeats and Stop, and all of that takes time and
// goroutines from [Config].Scheduler. So the syncer runs unchanged in simulated time, but for the deadline
// of Stop: see loop.go.
//
// Counters of strict limits have a queue and round trips of their own, with a deadline that does not
// grow with the number of counters. A lost reply then keeps the keys of its round trip without
// permits for less than half a second, and other keys not at all. Three failures in a row are an
// outage for strict limits; calls that fail while they are under way together are one.
//
// health.go watches how the calls go, and outage.go lets limits be decided by their OnOutage when
// they fail. heartbeat.go compares the clocks and finds which instances are alive. identity.go
// holds the ID and the sequences that this process writes under.
//
// # Two instances, worked through
//
// A and B share a counter whose document has the count 1. A admits one request and B three. B
// writes first: version and etag are what it last read, so the store adds 3 and the document has 4.
// A's write is a conflict, because the etag has changed. A writes again, now on the condition that
// the document does not have its sequence yet, and reads the document in the same exchange: 5, its
// own request included. Meanwhile A has decided with 1 + 1 and then with 5, never with less than it
// had admitted itself.
package syncer
