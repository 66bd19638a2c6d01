// Package workload generates traffic: token requests of simulated clients, in simulated time. The
// same seed gives the same requests.
//
// A [Spec] names a kind of traffic, such as Poisson arrivals, heavy tails or bursts at a frame's
// edge, and how the clients react. [New] returns its source. A kind generates calls, and each call
// needs a token. A client's behaviour turns calls into token requests. A client that ignores the
// answers requests a token on every call. One that keeps its token requests a new one when it ends.
// One that retries sends its request again.
//
//	src := workload.New(workload.Spec{Traffic: "poisson", Rate: 2, Requests: 100, Window: time.Minute})
//	for src.Next(&r) {
//		src.Answer(&r, decide(&r))
//	}
//
// Memory is bounded by the number of clients and by the requests to be retried, not by the length
// of the simulation: each client is a stream that knows its next call, and a heap merges them. If
// clients differ only in how often they call (zipf), one stream draws them at random. This gives
// the same traffic: independent Poisson streams together are one Poisson stream, and each client's
// share of its calls is proportional to the client's rate.
package workload
