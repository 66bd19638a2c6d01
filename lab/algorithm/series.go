package algorithm

import (
	"time"

	"oauth-server/internal/simulate/traffic"
)

// maxIntervals is the maximum number of intervals in a [Series].
const maxIntervals = 100_000

// series collects values over time. When there are too many intervals, it merges them in pairs.
type series struct {
	Series
	begun              bool
	every, first, next int64 // interval length in ms; numbers of the first interval and of the first incomplete one
}

func newSeries(per time.Duration) *series { return &series{every: per.Milliseconds()} }

// advance completes the intervals that have ended by time ms. It records the exact count and the
// estimate for key k at the end of each interval.
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

// number returns the number of the interval that contains time ms.
func (s *series) number(ms int64) int64 { return floor(ms, s.every) }

// index returns the index of the interval that contains time ms. It first makes the intervals longer
// if there would be too many.
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
	// An interval that is only half over has no value for its end yet.
	over := max(2*int(s.next-s.first)-odd, 0)
	s.Exact = inPairs(s.Exact[:min(over, len(s.Exact))], odd, later)
	s.Estimate = inPairs(s.Estimate[:min(over, len(s.Estimate))], odd, later)
}

// inPairs merges values in pairs. If odd is 1, the first value stays on its own.
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
	if n := max(len(r.Requests), len(r.Tokens)); n > 0 { // make both the same length
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
