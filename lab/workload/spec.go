package workload

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"oauth-server/internal/simulate/traffic"
)

// Start is the begin of simulated time: a full hour, and so the edge of a frame of every usual
// limit.
var Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Spec describes the traffic to generate. A zero field means the usual value for the kind.
type Spec struct {
	Traffic string // a kind of traffic
	Clients string // how clients react

	// Rate is how often a client calls, as a multiple of the tested limit: Requests in a Window.
	// For traffic of unequal clients, the kind defines which client has this rate.
	Rate     float64
	Requests int64
	Window   time.Duration

	Number   int // of clients
	Duration time.Duration
	Seed     uint64
	Lifetime time.Duration // of a token
}

// Complete returns the spec with usual values for zero fields. It panics if there is no such traffic.
func (s Spec) Complete() Spec {
	s.Traffic, s.Clients = cmp.Or(s.Traffic, Poisson), cmp.Or(s.Clients, Ignore)
	k, known := kinds[s.Traffic]
	if !known {
		panic(fmt.Sprintf("workload: no traffic %q", s.Traffic))
	}
	s.Requests, s.Window = cmp.Or(s.Requests, 100), cmp.Or(s.Window, time.Minute)
	s.Rate, s.Number = cmp.Or(s.Rate, k.rate), cmp.Or(s.Number, k.number)
	s.Duration, s.Lifetime = cmp.Or(s.Duration, k.duration, s.long(k.calls)), cmp.Or(s.Lifetime, time.Hour)
	return s
}

// New returns a source of the traffic. It panics if there is no such traffic or behaviour.
func New(s Spec) traffic.Source {
	s = s.Complete()
	b, known := behaviours[s.Clients]
	if !known {
		panic(fmt.Sprintf("workload: no behaviour %q of clients", s.Clients))
	}
	calls := merge(kinds[s.Traffic].streams(&s), s.Duration, s.Lifetime)
	if b.every() {
		return calls
	}
	return react(calls, b, &s)
}

// interval returns the mean time between two calls at a rate that is a multiple of the limit, in
// nanoseconds.
func (s *Spec) interval(rate float64) float64 {
	return float64(s.Window) / (float64(s.Requests) * rate)
}

// long returns how long the given number of calls of a client takes on average.
func (s *Spec) long(calls float64) time.Duration {
	return time.Duration(calls * s.interval(s.Rate))
}

// calls returns a multiple of the limit as a number of calls, at least 1.
func (s *Spec) calls(rate float64) int { return max(int(math.Round(float64(s.Requests)*rate)), 1) }
