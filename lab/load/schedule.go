package load

import (
	"math/rand/v2"
	"time"
)

// schedule gives the times at which requests are due.
type schedule struct {
	phases []Phase
	random *rand.Rand
	next   time.Duration // when the next request is due
	end    time.Duration // of the phases so far
}

func newSchedule(phases []Phase, seed, stream uint64) *schedule {
	s := &schedule{phases: phases, random: rand.New(rand.NewPCG(seed, stream))} //nolint:gosec // G404: random times, not a secret
	s.begin()
	return s
}

// begin sets the first time of the next phase.
func (s *schedule) begin() {
	if len(s.phases) > 0 {
		s.next = s.end
		s.end += s.phases[0].For
		s.advance()
	}
}

// advance sets the next time. Where it is behind the end of the phase, the next phase begins there.
func (s *schedule) advance() {
	rate := s.phases[0].Rate
	if rate > 0 {
		s.next += time.Duration(s.random.ExpFloat64() / rate * float64(time.Second))
	}
	if rate <= 0 || s.next >= s.end {
		s.phases = s.phases[1:]
		s.begin()
	}
}

// due returns the earliest time that is not after now, and whether there is one.
func (s *schedule) due(now time.Duration) (time.Duration, bool) {
	if len(s.phases) == 0 || s.next > now {
		return 0, false
	}
	at := s.next
	s.advance()
	return at, true
}

// over returns the length of all phases.
func over(phases []Phase) (sum time.Duration) {
	for _, p := range phases {
		sum += p.For
	}
	return sum
}
