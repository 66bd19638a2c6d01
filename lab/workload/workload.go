// Package workload generates traffic: token requests of simulated clients, in simulated time. The same seed gives the
// same requests.
//
//	src := workload.New(workload.Spec{Traffic: workload.Poisson, Rate: 2, Requests: 100, Window: time.Minute})
//	for src.Next(&r) {
//		src.Answer(&r, decide(&r))
//	}
//
// Memory is bounded by the number of clients and of retries, not by the length of the simulation: each client is a stream
// that knows its next call, and a heap merges them.
package workload

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"oauth-server/internal/simulate/traffic"
)

// Start is the begin of simulated time: a full hour, where frames of all usual limits begin.
var Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Spec describes the traffic to generate. A zero field means the usual value for the kind.
type Spec struct {
	Traffic string // a kind of traffic
	// Retry makes clients send a denied request again after Retry-After, for up to ten minutes.
	Retry bool

	// Rate is how often a client calls, as a multiple of the tested limit: Requests in a Window.
	Rate     float64
	Requests int64
	Window   time.Duration

	Number   int // of clients
	Duration time.Duration
	Seed     uint64
}

// Complete returns the spec with usual values for zero fields. It panics if there is no such traffic.
func (s Spec) Complete() Spec {
	k, known := kinds[s.Traffic]
	if !known {
		panic(fmt.Sprintf("workload: no traffic %q", s.Traffic))
	}
	s.Requests, s.Window = cmp.Or(s.Requests, 100), cmp.Or(s.Window, time.Minute)
	s.Rate, s.Number = cmp.Or(s.Rate, k.rate), cmp.Or(s.Number, k.number)
	s.Duration = cmp.Or(s.Duration, k.duration, time.Duration(k.calls*s.interval(s.Rate)))
	return s
}

// New returns a source of the traffic. It panics if there is no such traffic.
func New(s Spec) traffic.Source {
	s = s.Complete()
	calls := merge(kinds[s.Traffic].streams(&s), s.Duration)
	if s.Retry {
		return &retrying{calls: calls}
	}
	return calls
}

// interval returns the mean time between two calls at a rate that is a multiple of the limit, in nanoseconds.
func (s *Spec) interval(rate float64) float64 {
	return float64(s.Window) / (float64(s.Requests) * rate)
}

// calls returns a multiple of the limit as a number of calls, at least 1.
func (s *Spec) calls(rate float64) int { return max(int(math.Round(float64(s.Requests)*rate)), 1) }

// random returns the random numbers of a stream. Each stream has its own, so it does not depend on the others.
func (s *Spec) random(stream int) *rand.Rand {
	return rand.New(rand.NewPCG(s.Seed, uint64(stream))) //nolint:gosec // G404: traffic is to be the same for a seed
}
