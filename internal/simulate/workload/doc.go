// Package workload makes traffic up: token requests of simulated clients, in simulated time, the same ones for the
// same seed.
//
// A [Spec] names a kind of traffic, such as Poisson arrivals, heavy tails or bursts at a frame's edge, and
// how the clients react. [New] returns its source. What a kind makes are calls, each of which needs a
// token; what a client's behaviour makes of them are token requests. One that ignores the answers
// asks for a token on every call; one that keeps its token asks when that ends; one that retries asks again.
//
//	src, err := workload.New(workload.Spec{Traffic: "poisson", Rate: 2, Requests: 100, Window: time.Minute})
//	for src.Next(&r) {
//		src.Answer(&r, decide(&r))
//	}
//
// Memory is bounded by the number of clients and by the requests that are to be retried, not by the length
// of the simulation: each client is a stream that knows its next call, and a heap merges them. Where
// clients are told apart only by how often they call (zipf), one stream draws them at random, which gives the
// same traffic: independent Poisson streams together are one, whose calls are of each in proportion to its rate.
package workload
