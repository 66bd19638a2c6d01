// Package cluster simulates several instances of the server that share the counts of a limit: the counters
// and the syncer of the server itself, in simulated time, with a store in memory behind a network that
// is slow, loses messages or is down, and with clocks that are wrong.
//
//	result, err := cluster.Run(ctx, cluster.Config{Instances: 10, Limit: limit, Flush: cluster.Flush{Every: time.Second}}, source)
//
// Every request goes to one of the instances, which decides at once. What the cluster has admitted is
// compared with an exact log of it, and with one counter that has all requests: see [Over]. What it cost is
// counted: see [Cost]. The same configuration, seed and traffic give the same result.
//
// # What is simulated, and what is not
//
// [internal/syncer], [internal/ratelimit] and [internal/clock] run as they are, with their loops, heartbeats,
// back-offs and overlapping calls; only time and goroutines are those of a simulation (package simtime).
// The store is internal/syncer/memstore, which passes the suite that all stores pass. It forgives nothing of
// that contract, but it is one process that never fails by itself: what it has confirmed is never lost, as
// with a majority of a replica set. A command takes as long as its two messages, however much is in it, and
// messages have no order. A request costs an instance no time, and its memory is not bounded by that of a
// machine. Strict limits are not simulated: requests under them wait, in real time.
//
// With [Flush.Plain] the flush rule is replaced by a plain interval: each instance exchanges every key that had
// a request within the last window, each interval, and again at once where another one came between. Its
// process time is its own clock's.
package cluster
