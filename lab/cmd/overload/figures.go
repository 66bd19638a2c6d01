package main

import (
	"slices"
	"time"

	"oauth-server/lab/load"
)

// figures are the outcomes of requests that were due in an interval. OK is the answer that their callers want.
type figures struct {
	load.Figures
	// late counts requests left out of all other figures, because the generator did not run when they
	// were due or when their answer came.
	late int
}

// due returns the number of requests.
func (f figures) due() int { return len(f.Took) }

// success is the share of requests that are ok.
func (f figures) success() float64 { return share(len(f.OK), f.due()) }

// share returns a part of some requests; NaN of none.
func share(n, of int) float64 { return float64(n) / float64(of) }

// p returns a percentile of the latencies of ok requests, in milliseconds.
func (f figures) p(percent float64) float64 {
	return float64(load.Percentile(f.OK, percent).Microseconds()) / 1000
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

// figure returns the figures of the given classes in [from, to).
func figure(result *load.Result, from, to time.Duration, of ...class) (f figures) {
	late := newLateness(result.Gaps)
	f.Figures = result.Where(from, to, func(r *load.Record) bool {
		if !slices.Contains(of, class(r.Class)) {
			return false
		}
		if late.in(r) {
			f.late++
			return false
		}
		return true
	})
	return f
}

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
