package main

import (
	"math"
	"slices"
	"time"

	"oauth-server/lab/load"
)

// figures counts the outcomes of requests that were due in an interval.
type figures struct {
	due     int // requests
	ok      int // the answer that the caller wanted
	refused int // 503
	limited int // 429
	hungUp  int // no answer before the callers hung up
	other   int // other answers, and connections that the server closed
	// p50 and p99 are latencies of the ok requests, in milliseconds.
	p50, p99 float64
	// late counts requests left out of all other figures, because the generator did not run when they
	// were due or when their answer came.
	late int
}

// success is the share of requests that are ok.
func (f figures) success() float64 {
	if f.due == 0 {
		return math.NaN()
	}
	return float64(f.ok) / float64(f.due)
}

// lateGap is the shortest generator gap that makes [figure] leave out requests.
const lateGap = 5 * time.Millisecond

// lateness finds requests with unreliable times.
type lateness struct{ gaps []load.Gap }

func newLateness(gaps []load.Gap) lateness {
	var l lateness
	for _, g := range gaps {
		if g.To-g.From >= lateGap {
			l.gaps = append(l.gaps, g)
		}
	}
	return l
}

// in reports whether a request was due while the generator did not run, or its answer was read right after that.
func (l lateness) in(r *load.Record) bool {
	within := func(at, grace time.Duration) bool {
		i, _ := slices.BinarySearchFunc(l.gaps, at, func(g load.Gap, at time.Duration) int {
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
func figure(result *load.Result, from, to time.Duration, of ...class) (f figures) {
	late := newLateness(result.Gaps)
	var took []time.Duration
	for i := range result.Records {
		r := &result.Records[i]
		if r.Due < from || r.Due >= to || !slices.Contains(of, class(r.Class)) {
			continue
		}
		if late.in(r) {
			f.late++
			continue
		}
		f.due++
		switch {
		case r.Status == class(r.Class).wanted():
			f.ok++
			took = append(took, r.Took())
		case r.Status == 503:
			f.refused++
		case r.Status == 429:
			f.limited++
		case r.Status == load.HungUp:
			f.hungUp++
		default:
			f.other++
		}
	}
	slices.Sort(took)
	f.p50, f.p99 = milliseconds(load.Percentile(took, 50)), milliseconds(load.Percentile(took, 99))
	return f
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// recovered returns how long after the end of an overload it took until 99 % of the requests that were due from then on were
// OK within bound. ok is false if that was not so of the requests of the last second either.
func recovered(result *load.Result, from, to time.Duration, bound time.Duration, of ...class) (after time.Duration, ok bool) {
	late := newLateness(result.Gaps)
	var all []*load.Record
	for i := range result.Records {
		r := &result.Records[i]
		if r.Due >= from && r.Due < to && slices.Contains(of, class(r.Class)) && !late.in(r) {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *load.Record) int { return int(b.Due - a.Due) }) // the latest first
	after = to - from
	bad := 0
	for n, r := range all {
		if r.Status != class(r.Class).wanted() || r.Took() > bound {
			bad++
		}
		if bad*100 <= n+1 {
			after = r.Due - from
		}
	}
	return after, after <= to-from-time.Second
}
