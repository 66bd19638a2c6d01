package workload

import (
	"cmp"
	"math"
	"slices"
	"time"

	"oauth-server/internal/fielderr"
	"oauth-server/internal/simulate/traffic"
)

// Start is the begin of simulated time: a full hour, and so the edge of a frame of every usual
// limit.
var Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Spec describes the traffic to generate. A zero field means the usual value for the kind.
type Spec struct {
	Traffic string `json:"traffic"` // the name of a kind, see [Kinds]
	Clients string `json:"clients"` // the name of how clients react, see [Behaviours]

	// Rate is how often a client calls, as a multiple of the tested limit: Requests in a Window.
	// For traffic of unequal clients, the kind defines which client has this rate.
	Rate     float64       `json:"rate"`
	Requests int64         `json:"requests"`
	Window   time.Duration `json:"-"`

	Number   int           `json:"number"` // of clients
	Duration time.Duration `json:"-"`
	Seed     uint64        `json:"seed"`
	// Lifetime is how long a token lives.
	Lifetime time.Duration `json:"-"`
}

// Bounds of a Spec.
const (
	MaxNumber   = 1_000_000
	MaxRate     = 1_000_000
	MaxDuration = 400 * 24 * time.Hour
)

// Complete returns the spec with usual values for zero fields. The error lists all problems.
func (s Spec) Complete() (Spec, error) {
	var errs fielderr.Errors
	s.Traffic, s.Clients = cmp.Or(s.Traffic, Poisson), cmp.Or(s.Clients, Ignore)
	k, known := kindOf(s.Traffic)
	if !known {
		errs.Add("traffic", "there is no kind %q; there are %s", s.Traffic, names(Kinds(), func(k Kind) string { return k.Name }))
	}
	if _, known := behaviourOf(s.Clients); !known {
		errs.Add("clients", "there is no behaviour %q; there are %s", s.Clients, names(Behaviours(), func(b Behaviour) string { return b.Name }))
	}
	s.Requests, s.Window = cmp.Or(s.Requests, 100), cmp.Or(s.Window, time.Minute)
	s.Rate, s.Number = cmp.Or(s.Rate, k.rate), cmp.Or(s.Number, k.number)
	s.Duration, s.Lifetime = cmp.Or(s.Duration, k.duration, s.long(k.calls)), cmp.Or(s.Lifetime, time.Hour)
	if s.Requests < 1 {
		errs.Add("requests", "%d is not at least 1", s.Requests)
	}
	if s.Window < time.Millisecond {
		errs.Add("window", "%v is not at least a millisecond", s.Window)
	}
	if known && !(s.Rate > 0 && s.Rate <= MaxRate) { // also catches NaN
		errs.Add("rate", "%v is not above 0 and at most %d", s.Rate, MaxRate)
	}
	if known && (s.Number < k.least || s.Number > MaxNumber) {
		errs.Add("number", "%d is not between %d and %d", s.Number, k.least, MaxNumber)
	}
	if known && (s.Duration < time.Second || s.Duration > MaxDuration) {
		errs.Add("duration", "%v is not between a second and %v", s.Duration, MaxDuration)
	}
	if s.Lifetime < time.Second {
		errs.Add("lifetime", "%v is not at least a second", s.Lifetime)
	}
	return s, errs.Err()
}

// New returns a source of the traffic. The error lists all problems of the spec.
func New(s Spec) (traffic.Source, error) {
	s, err := s.Complete()
	if err != nil {
		return nil, err
	}
	k, _ := kindOf(s.Traffic)
	b, _ := behaviourOf(s.Clients)
	calls := merge(k.streams(&s), s.Duration, s.Lifetime)
	if b.every() {
		return calls, nil
	}
	return react(calls, b, &s), nil
}

// interval returns the mean time between two calls at a rate that is a multiple of the limit, in
// nanoseconds.
func (s *Spec) interval(rate float64) float64 {
	return float64(s.Window) / (float64(s.Requests) * rate)
}

// long returns how long the given number of calls of a client takes on average.
func (s *Spec) long(calls float64) time.Duration {
	return time.Duration(min(calls*s.interval(s.Rate), float64(MaxDuration)))
}

// calls returns a multiple of the limit as a number of calls, at least 1.
func (s *Spec) calls(rate float64) int { return max(int(math.Round(float64(s.Requests)*rate)), 1) }

func kindOf(name string) (Kind, bool) {
	return find(Kinds(), func(k Kind) bool { return k.Name == name })
}

func behaviourOf(name string) (Behaviour, bool) {
	return find(Behaviours(), func(b Behaviour) bool { return b.Name == name })
}

func find[T any](all []T, is func(T) bool) (found T, ok bool) {
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i], true
	}
	return found, false
}

func names[T any](all []T, name func(T) string) (out []string) {
	for _, one := range all {
		out = append(out, name(one))
	}
	return out
}
