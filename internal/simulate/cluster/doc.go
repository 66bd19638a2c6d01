// Package cluster simulates several instances of the server that share the counts of a limit. It
// runs the counters and the syncer of the server itself in simulated time, with a store in memory.
// The network to the store is slow, loses messages or is down, and the clocks are wrong.
//
//	result, err := cluster.Run(ctx, cluster.Config{Instances: 10, Limit: limit, Flush: cluster.Flush{Every: time.Second}}, source)
//
// Every request goes to one of the instances, which decides at once. The admitted requests are
// compared with an exact log of them, and with one counter that has all requests: see [Over].
// [Cost] counts the calls to the store. The same configuration, seed and traffic give the same
// result.
//
// # What is simulated, and what is not
//
// [internal/syncer], [internal/ratelimit] and [internal/clock] run unchanged, with their loops,
// heartbeats, back-offs and overlapping calls. Only time and goroutines are simulated (package
// simtime). The store is internal/syncer/memstore, which passes the suite for all stores and
// follows its whole contract. But it is one process that never fails by itself: data that it has
// confirmed is never lost, as with a majority of a replica set. A command takes as long as its two
// messages, whatever its size, and messages have no order. A request costs an instance no time, and
// its memory is not bounded by a machine. Strict limits are not simulated: requests under them
// wait, in real time.
//
// [Flush.Plain] replaces the flush rule by a plain interval. At each interval, each instance
// exchanges every key that had a request within the last window, and exchanges it again at once if
// another instance wrote in between. Its process time is the time of its own clock.
package cluster
