package overload

import (
	"math"
	"slices"
	"time"

	"oauth-server/lab/openloop"
)

// Figures counts the outcomes of requests that were due in an interval.
type Figures struct {
	Due     int // requests
	OK      int // the answer that the caller wanted
	Refused int // 503
	Limited int // 429
	HungUp  int // no answer before the callers hung up
	Other   int // other answers, and connections that the server closed
	// P50 and P99 are latencies of the OK requests, in milliseconds.
	P50, P99 float64
	// Late counts requests left out of all other figures, because the generator did not run when they
	// were due or when their answer came.
	Late int
}

// Success is the share of requests that are OK.
func (f Figures) Success() float64 {
	if f.Due == 0 {
		return math.NaN()
	}
	return float64(f.OK) / float64(f.Due)
}

// lateGap is the shortest generator gap that makes [figure] leave out requests.
const lateGap = 5 * time.Millisecond

// lateness finds requests with unreliable times.
type lateness struct{ gaps []openloop.Gap }

func newLateness(gaps []openloop.Gap) lateness {
	var l lateness
	for _, g := range gaps {
		if g.To-g.From >= lateGap {
			l.gaps = append(l.gaps, g)
		}
	}
	return l
}

// in reports whether a request was due while the generator did not run, or its answer was read right after that.
func (l lateness) in(r *openloop.Record) bool {
	within := func(at, grace time.Duration) bool {
		i, _ := slices.BinarySearchFunc(l.gaps, at, func(g openloop.Gap, at time.Duration) int {
			if g.To+grace < at {
				return -1
			}
			return 1
		})
		return i < len(l.gaps) && l.gaps[i].From <= at
	}
	const reading = 2 * time.Millisecond // time to read answers that arrived during the gap
	return within(r.Due, 0) || within(r.Done, reading)
}

// figure counts the requests of the given classes that were due in [from, to).
func figure(result *openloop.Result, from, to time.Duration, classes ...Class) (f Figures) {
	late := newLateness(result.Gaps)
	var took []time.Duration
	for i := range result.Records {
		r := &result.Records[i]
		if r.Due < from || r.Due >= to || !slices.Contains(classes, Class(r.Class)) {
			continue
		}
		if late.in(r) {
			f.Late++
			continue
		}
		f.Due++
		switch {
		case r.Status == Class(r.Class).wanted():
			f.OK++
			took = append(took, r.Took())
		case r.Status == 503:
			f.Refused++
		case r.Status == 429:
			f.Limited++
		case r.Status == openloop.HungUp:
			f.HungUp++
		default:
			f.Other++
		}
	}
	slices.Sort(took)
	f.P50, f.P99 = milliseconds(percentile(took, 50)), milliseconds(percentile(took, 99))
	return f
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// percentile returns what p per cent of the sorted values do not exceed; 0 of none.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(int(math.Ceil(float64(len(sorted))*p/100)), 1)-1]
}

// recovery returns how long after the end of an overload it took until 99 % of the requests that were due from then on were
// OK within bound. ok is false if that was not so of the requests of the last second either.
func recovery(result *openloop.Result, from, to time.Duration, bound time.Duration, classes ...Class) (after time.Duration, ok bool) {
	late := newLateness(result.Gaps)
	var all []*openloop.Record
	for i := range result.Records {
		r := &result.Records[i]
		if r.Due >= from && r.Due < to && slices.Contains(classes, Class(r.Class)) && !late.in(r) {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *openloop.Record) int { return int(b.Due - a.Due) }) // the latest first
	after = to - from
	bad := 0
	for n, r := range all {
		if r.Status != Class(r.Class).wanted() || r.Took() > bound {
			bad++
		}
		if bad*100 <= n+1 {
			after = r.Due - from
		}
	}
	return after, after <= to-from-time.Second
}
