package simulate

import (
	"maps"
	"slices"

	"oauth-server/internal/simulate/traffic"
)

// search finds the lowest limit for a share of the requests. The peaks do not show how many
// requests a limit denies, because denied requests are not counted. So search tries a limit in each
// pass. It halves the range between a limit that denies too many and one that does not, and assumes
// that a higher limit does not deny more.
type search struct {
	peaks    *peaks
	policies *Policies
	share    float64
	maxKeys  int
	requests map[day]uint64
	denied   map[int64]map[day]uint64 // by limit tried
}

func newSearch(p *peaks, policies *Policies, share float64, maxKeys int) *search {
	return &search{
		peaks: p, policies: policies, share: share, maxKeys: maxKeys, requests: map[day]uint64{},
		denied: map[int64]map[day]uint64{p.highest(): {}}, // because no request needs more
	}
}

// noDay means that no day is left out.
const noDay day = -1 << 31

// untouched returns, without a day, how many requests a tried limit does not deny, and how many
// there are.
func (s *search) untouched(limit int64, without day) (left, all uint64) {
	for d, n := range s.requests {
		if d != without {
			left, all = left+n-s.denied[limit][d], all+n
		}
	}
	return left, all
}

// bounds returns, without a day, the highest limit known to deny too many requests, or 0, and the
// lowest limit known not to.
func (s *search) bounds(without day) (low, high int64) {
	high = s.peaks.highest()
	for limit := range s.denied {
		left, all := s.untouched(limit, without)
		if left >= atLeast(s.share, all) {
			high = min(high, limit)
		}
	}
	for limit := range s.denied {
		if left, all := s.untouched(limit, without); limit < high && left < atLeast(s.share, all) {
			low = max(low, limit)
		}
	}
	return low, high
}

// days returns noDay, followed by the days to leave out one by one.
func (s *search) days() []day {
	all := []day{noDay}
	if n := len(s.peaks.days); n > 1 && n <= maxDays {
		all = append(all, slices.Sorted(maps.Keys(s.peaks.days))...)
	}
	return all
}

// next returns the limit to try next, or 0 once all answers are known.
func (s *search) next() int64 {
	for _, d := range s.days() {
		if low, high := s.bounds(d); high-low > 1 {
			return (low + high) / 2
		}
	}
	return 0
}

// try applies a limit to the requests of a source.
func (s *search) try(limit int64, each func(func(*traffic.Request)) error) error {
	form := s.peaks.form.with(limit)
	a, err := newAlone(s.policies, &form.Limit, s.maxKeys)
	if err != nil {
		return err
	}
	denied := map[day]uint64{}
	s.denied[limit] = denied
	clear(s.requests)
	return each(func(r *traffic.Request) {
		k, e, does := a.concerns(r)
		if !does {
			return
		}
		today := dayOf(r.At)
		s.requests[today]++
		if d := a.take(r.At, k, e); d.Rejected() {
			denied[today]++
		}
	})
}

// target returns the answer. next must have returned 0.
func (s *search) target() Target {
	t := Target{Share: s.share, Of: OfRequests}
	_, t.Requests = s.bounds(noDay)
	t.Untouched, t.Count = s.untouched(t.Requests, noDay)
	for _, limit := range slices.Sorted(maps.Keys(s.denied)) {
		left, _ := s.untouched(limit, noDay)
		t.Curve = append(t.Curve, Point{limit, left})
	}
	s.peaks.complete(&t)
	for _, d := range s.days()[1:] {
		_, requests := s.bounds(d)
		t.addDay(d, requests)
	}
	return t
}
