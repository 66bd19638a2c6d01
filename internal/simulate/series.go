package simulate

import (
	"time"

	"oauth-server/internal/simulate/traffic"
)

// steps are the lengths of the parts of a series. Each is a multiple of the one before. After the
// last one, lengths double.
var steps = []time.Duration{
	time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute,
	time.Hour, 4 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour,
}

// series counts requests over time. Its parts are as short as possible, and grow with the length of
// the log.
type series struct {
	most                               int // maximum number of parts
	start                              int64
	step                               int64 // seconds
	requests, refused, delayed, reused []uint32
}

func newSeries(most int) *series { return &series{most: most} }

// add counts a request of that time.
func (s *series) add(at time.Time, o traffic.Outcome) {
	sec := at.Unix()
	if s.step == 0 {
		s.step, s.start = 1, sec
	}
	i := int((sec - s.start) / s.step)
	for i >= s.most {
		s.widen()
		i = int((sec - s.start) / s.step)
	}
	if i < 0 { // a queued request arrived before the first one of its client
		i = 0
	}
	increment(&s.requests, i)
	switch o {
	case traffic.Denied, traffic.Banned:
		increment(&s.refused, i)
	case traffic.Delayed:
		increment(&s.delayed, i)
	case traffic.Reused:
		increment(&s.reused, i)
	default:
	}
}

func increment(counts *[]uint32, i int) {
	for len(*counts) <= i {
		*counts = append(*counts, 0)
	}
	(*counts)[i]++
}

// widen makes the parts longer.
func (s *series) widen() {
	step := 2 * s.step
	for _, longer := range steps {
		if sec := int64(longer / time.Second); sec > s.step {
			step = sec
			break
		}
	}
	start := s.start - mod(s.start, step)
	offset := (s.start - start) / s.step
	for _, counts := range []*[]uint32{&s.requests, &s.refused, &s.delayed, &s.reused} {
		old := *counts
		var merged []uint32
		for i, n := range old {
			j := int((int64(i) + offset) * s.step / step)
			for len(merged) <= j {
				merged = append(merged, 0)
			}
			merged[j] += n
		}
		*counts = merged
	}
	s.start, s.step = start, step
}

func mod(n, by int64) int64 {
	if m := n % by; m < 0 {
		return m + by
	} else {
		return m
	}
}

// result returns the series up to a time.
func (s *series) result(until time.Time) Series {
	out := Series{Start: time.Unix(s.start, 0).UTC(), Step: Seconds(s.step)}
	if s.step == 0 {
		return Series{Requests: []uint64{}, Refused: []uint64{}}
	}
	n := max(len(s.requests), min(int((until.Unix()-s.start)/s.step)+1, s.most))
	fill := func(counts []uint32) []uint64 {
		all := make([]uint64, n)
		for i, c := range counts {
			all[i] = uint64(c)
		}
		return all
	}
	out.Requests, out.Refused = fill(s.requests), fill(s.refused)
	if len(s.delayed) > 0 {
		out.Delayed = fill(s.delayed)
	}
	if len(s.reused) > 0 {
		out.Reused = fill(s.reused)
	}
	return out
}
