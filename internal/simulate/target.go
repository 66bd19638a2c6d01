package simulate

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate/traffic"
)

// Goal describes the limits to find: the lowest of these forms that leave a share untouched.
type Goal struct {
	Share float64 // above 0, at most 1
	Of    Of
	// Limits are the forms. The search varies only their Requests.
	Limits []Form
}

// Form is a limit and its notation, such as 100/60s.
type Form struct {
	Spec  string
	Limit ratelimit.Limit
}

// with returns the limit of the form with that many requests, and its notation.
func (f *Form) with(requests int64) Form {
	_, rest, _ := strings.Cut(f.Spec, "/")
	l := f.Limit
	l.Requests = requests
	return Form{strconv.FormatInt(requests, 10) + "/" + rest, l}
}

// Bounds of what a [Target] lists.
const (
	maxOutstanding = 1000
	maxCurve       = 200
	// maxDays is the largest number of days to leave out one by one. For a longer log the stability
	// of the answer is not computed.
	maxDays = 366
)

// day is the number of a day since 1970, in UTC.
type day int32

func dayOf(t time.Time) day {
	sec := t.Unix()
	return day((sec - mod(sec, 24*60*60)) / (24 * 60 * 60)) //nolint:gosec // for millions of years
}

func (d day) String() string { return time.Unix(int64(d)*24*60*60, 0).UTC().Format(time.DateOnly) }

// peaks finds the lowest limit for a share of the clients in one pass. A limit refuses a client
// nothing if it is at least the client's peak: the highest count of any of its keys if no request
// was denied. So the limit to find is one of the peaks.
type peaks struct {
	*alone
	form    Form
	clients map[string]*peak
	days    map[day]bool
}

// peak has the peak of a client, and its peak without one day. The counts of a day that is left out
// still count in windows that reach into the next day.
type peak struct {
	most, other uint32 // other: over all days except on; 0: no request on them
	on          day
	requests    uint64
}

func newPeaks(p *Policies, f Form, maxKeys int) (*peaks, error) {
	huge := f.with(ratelimit.MaxRequests)
	a, err := newAlone(p, &huge.Limit, maxKeys)
	if err != nil {
		return nil, err
	}
	return &peaks{alone: a, form: f, clients: map[string]*peak{}, days: map[day]bool{}}, nil
}

func (p *peaks) add(r *traffic.Request) {
	k, e, does := p.concerns(r)
	if !does {
		return
	}
	needs := uint32(p.needs(r.At, k, e)) //nolint:gosec // at most MaxRequests
	c, today := p.clients[r.Client], dayOf(r.At)
	if c == nil {
		c = &peak{on: today}
		p.clients[strings.Clone(r.Client)] = c
	}
	c.requests++
	p.days[today] = true
	switch {
	case today == c.on:
		c.most = max(c.most, needs)
	case needs > c.most:
		c.other, c.most, c.on = c.most, needs, today
	default:
		c.other = max(c.other, needs)
	}
}

// without returns the peak of a client without a day; 0 if it has no other requests.
func (p *peak) without(d day) uint32 {
	if p.on == d {
		return p.other
	}
	return p.most
}

// highest returns the highest peak.
func (p *peaks) highest() int64 {
	most := uint32(1)
	for _, c := range p.clients {
		most = max(most, c.most)
	}
	return int64(most)
}

// target returns the answer for a share of the clients.
func (p *peaks) target(share float64) Target {
	sorted := p.sorted(func(c *peak) uint32 { return c.most })
	t := Target{Share: share, Of: OfClients, Count: uint64(len(sorted)), Requests: lowest(sorted, share), Curve: curve(sorted)}
	t.Untouched = uint64(untouched(sorted, t.Requests)) //nolint:gosec // not negative
	p.complete(&t)
	if len(p.days) < 2 || len(p.days) > maxDays {
		return t
	}
	for _, d := range slices.Sorted(maps.Keys(p.days)) {
		rest := p.sorted(func(c *peak) uint32 { return c.without(d) })
		t.addDay(d, lowest(rest, share))
	}
	return t
}

// complete adds the notation of the limit, and the clients that need more.
func (p *peaks) complete(t *Target) {
	found := p.form.with(t.Requests)
	t.Limit, t.Found, t.Outstanding = found.Spec, found.Limit, []Outstanding{}
	for id, c := range p.clients {
		if int64(c.most) > t.Requests {
			t.Outstanding = append(t.Outstanding, Outstanding{ClientID: id, Needs: int64(c.most), Requests: c.requests})
		}
	}
	slices.SortFunc(t.Outstanding, func(a, b Outstanding) int {
		return cmp.Or(cmp.Compare(b.Needs, a.Needs), cmp.Compare(a.ClientID, b.ClientID))
	})
	if t.MoreOutstanding = max(len(t.Outstanding)-maxOutstanding, 0); t.MoreOutstanding > 0 {
		t.Outstanding = t.Outstanding[:maxOutstanding]
	}
}

// addDay adds the answer without a day.
func (t *Target) addDay(d day, requests int64) {
	if len(t.Days) == 0 {
		t.Min, t.Max = requests, requests
	}
	t.Days = append(t.Days, Day{d.String(), requests})
	t.Min, t.Max = min(t.Min, requests), max(t.Max, requests)
}

// sorted returns the peaks above 0.
func (p *peaks) sorted(of func(*peak) uint32) []uint32 {
	all := make([]uint32, 0, len(p.clients))
	for _, c := range p.clients {
		if n := of(c); n > 0 {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all
}

// lowest returns the lowest limit that covers at least a share of the sorted peaks. There must be
// at least one peak.
func lowest(sorted []uint32, share float64) int64 {
	return int64(sorted[max(atLeast(share, uint64(len(sorted))), 1)-1])
}

// atLeast returns how many of n are at least a share. A share such as 0.999 is not exact, so
// atLeast rounds a product that is almost whole.
func atLeast(share float64, n uint64) uint64 {
	const off = 1e-9
	return min(uint64(math.Ceil(share*float64(n)*(1-off))), n)
}

// untouched returns how many of the sorted peaks a limit covers.
func untouched(sorted []uint32, requests int64) int {
	n, _ := slices.BinarySearchFunc(sorted, requests, func(p uint32, requests int64) int {
		if int64(p) <= requests {
			return -1
		}
		return 1
	})
	return n
}

// curve returns how many of the sorted peaks various limits cover. With many different peaks it
// leaves some out.
func curve(sorted []uint32) []Point {
	points := []Point{}
	for i, n := range sorted {
		if i+1 == len(sorted) || sorted[i+1] != n {
			points = append(points, Point{int64(n), uint64(i + 1)})
		}
	}
	return thinned(points)
}

func thinned(points []Point) []Point {
	n := len(points)
	if n <= maxCurve {
		return points
	}
	some := make([]Point, maxCurve)
	for i := range some {
		some[i] = points[i*(n-1)/(maxCurve-1)]
	}
	return some
}
