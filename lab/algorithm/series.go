package algorithm

import (
	"time"

	"oauth-server/internal/simulate/traffic"
)

// series collects values over time.
type series struct {
	Series
	every, first int64 // interval length in ms; number of the first interval
}

func newSeries(per time.Duration, ms int64) *series {
	every := per.Milliseconds()
	return &series{Series: Series{Seconds: per.Seconds()}, every: every, first: ms / every}
}

// index returns the index of the interval that contains time ms.
func (s *series) index(ms int64) int { return int(ms/s.every - s.first) }

// advance completes the intervals that have ended by time ms. It records the exact count and the
// estimate for key k at the end of each interval.
func (s *series) advance(ms int64, c *exactCount, k Key) {
	if c == nil {
		return
	}
	for len(s.Exact) < s.index(ms) {
		end := (s.first+int64(len(s.Exact))+1)*s.every - 1
		s.Exact = append(s.Exact, c.exactly(k, end))
		s.Estimate = append(s.Estimate, c.Estimate(k, end))
	}
}

// add counts a request. Its token counts in the interval of its issue.
func (s *series) add(ms int64, a traffic.Answer) {
	*of(&s.Requests, s.index(ms))++
	if !a.Refused() {
		*of(&s.Tokens, s.index(ms+a.Wait.Milliseconds()))++
	}
}

func (s *series) result() *Series {
	last := max(len(s.Requests), len(s.Tokens)) - 1 // make both the same length
	_, _ = of(&s.Requests, last), of(&s.Tokens, last)
	return &s.Series
}
