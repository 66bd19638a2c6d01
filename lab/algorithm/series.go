package algorithm

import (
	"time"

	"oauth-server/internal/simulate/traffic"
)

// maxIntervals is how many intervals a [Series] has at most.
const maxIntervals = 100_000

// series gathers values over time. Where there are too many intervals, each two become one.
type series struct {
	Series
	begun              bool
	every, first, next int64 // numbers of intervals: the first, and the first of those that are not over
}

func newSeries(per time.Duration) *series { return &series{every: per.Milliseconds()} }

// advance completes the intervals that are over at a time. The count and its estimate are those of a key, at the end
// of the interval.
func (s *series) advance(ms int64, c *counting, k Key) {
	if !s.begun {
		s.begun, s.first, s.next = true, s.number(ms), s.number(ms)
	}
	s.index(ms)
	for now := s.number(ms); s.next < now; s.next++ {
		end := (s.next + 1) * s.every
		_ = of(&s.Requests, int(s.next-s.first))
		if c != nil {
			s.Exact = append(s.Exact, c.exactly(k, end-1))
			s.Estimate = append(s.Estimate, c.Estimate(k, end-1))
		}
	}
}

// number is that of the interval of a time.
func (s *series) number(ms int64) int64 { return floor(ms, s.every) }

// index is the place of the interval of a time, for which the intervals are made longer if need be.
func (s *series) index(ms int64) int {
	for s.number(ms)-s.first >= maxIntervals {
		s.widen()
	}
	return int(s.number(ms) - s.first)
}

// widen makes the intervals twice as long.
func (s *series) widen() {
	odd := int(s.first & 1)
	s.Requests, s.Tokens = inPairs(s.Requests, odd, sum), inPairs(s.Tokens, odd, sum)
	s.every, s.first = 2*s.every, floor(s.first, 2)
	s.next = floor(s.next, 2)
	// Of an interval that is half over there is no value at its end yet.
	over := max(2*int(s.next-s.first)-odd, 0)
	s.Exact = inPairs(s.Exact[:min(over, len(s.Exact))], odd, later)
	s.Estimate = inPairs(s.Estimate[:min(over, len(s.Estimate))], odd, later)
}

// inPairs makes one of each two values; where odd is 1, the first has no other.
func inPairs[T any](all []T, odd int, pair func(a, b T) T) (out []T) {
	for i, v := range all {
		if (i+odd)%2 == 0 || i == 0 {
			out = append(out, v)
		} else {
			out[len(out)-1] = pair(out[len(out)-1], v)
		}
	}
	return out
}

func sum(a, b int64) int64 { return a + b }

func later[T any](_, b T) T { return b }

// add counts a request.
func (s *series) add(ms int64, a traffic.Answer) {
	served := s.index(ms + a.Wait.Milliseconds()) // may make the intervals longer
	*of(&s.Requests, s.index(ms))++
	if !a.Refused() {
		*of(&s.Tokens, served)++
	}
}

func (s *series) result() *Series {
	r := s.Series
	r.Seconds = (time.Duration(s.every) * time.Millisecond).Seconds()
	if n := max(len(r.Requests), len(r.Tokens)); n > 0 { // both are as long
		_, _ = of(&r.Requests, n-1), of(&r.Tokens, n-1)
	}
	return &r
}

// floor returns a/b, rounded down.
func floor(a, b int64) int64 {
	if a%b < 0 {
		return a/b - 1
	}
	return a / b
}
