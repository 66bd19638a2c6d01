package algorithm

import (
	"math"

	"oauth-server/internal/simulate/traffic"
)

// deciding compares decisions with the exact log of admitted requests.
type deciding struct {
	limit, window    int64
	logs             []log
	requests, tokens peak
}

func newDeciding(o Options) deciding {
	per := o.Per.Milliseconds()
	return deciding{
		limit: o.Limit.Requests, window: o.Limit.Window.Milliseconds(),
		requests: peak{every: per, now: map[int64]int64{}}, tokens: peak{every: per, now: map[int64]int64{}},
	}
}

// check checks a decision on a request that stands for weight requests, and records it in r.
func (d *deciding) check(k Key, ms int64, a traffic.Answer, weight int64, r *Result) {
	l := of(&d.logs, k.Number)
	l.forget(ms - d.window)
	r.Requests += weight
	d.requests.add(ms, ms)
	r.Spike.Requests = d.requests.most
	if a.Refused() {
		r.Denied += weight
		if free := d.limit - int64(l.len()); free > 0 {
			r.FalseDenials += weight
			r.Far += weight * d.far(free)
		}
		return
	}
	r.Admitted += weight
	at := ms + a.Wait.Milliseconds()
	r.LongestWait = max(r.LongestWait, a.Wait.Seconds())
	l.add(at)
	n := int64(l.after(at - d.window))
	if over := n - d.limit; over > 0 {
		r.FalseAdmits += weight
		r.Far += weight * d.far(over)
	}
	r.WorstWindow = max(r.WorstWindow, n)
	d.tokens.add(ms, at)
	r.Spike.Tokens = d.tokens.most
}

// far returns 1 if requests is more than FarPercent of the limit, otherwise 0.
func (d *deciding) far(requests int64) int64 {
	if 100*requests > FarPercent*d.limit {
		return 1
	}
	return 0
}

// peak finds the highest count in any interval.
type peak struct {
	every, most int64
	now         map[int64]int64 // counts by interval number, from the current interval on
	oldest      int64
}

// add counts one event at time at, which is not before now.
func (p *peak) add(now, at int64) {
	if n := now / p.every; n > p.oldest {
		for i := range p.now {
			if i < n {
				delete(p.now, i)
			}
		}
		p.oldest = n
	}
	i := at / p.every
	p.now[i]++
	p.most = max(p.most, p.now[i])
}

// exactCount compares an estimate with the exact count of all requests.
type exactCount struct {
	Estimator
	limit, window int64
	logs          []log

	Counted
	requests int64
	errors   float64          // sum
	wrong    map[int]struct{} // numbers of keys
}

func newCounting(e Estimator, l Limit) *exactCount {
	return &exactCount{Estimator: e, limit: l.Requests, window: l.Window.Milliseconds(), wrong: map[int]struct{}{}}
}

// count counts a request that stands for weight requests. The estimate and the exact count both
// include the request itself.
func (c *exactCount) count(k Key, ms, weight int64) {
	l := of(&c.logs, k.Number)
	l.forget(ms - c.window)
	estimate := c.Estimate(k, ms) + 1
	c.Count(k, ms)
	l.add(ms)
	n := int64(l.len())
	allowed, right := int64(math.Floor(estimate)) <= c.limit, n <= c.limit
	if allowed != right {
		c.wrong[k.Number] = struct{}{}
	}
	switch {
	case allowed && !right:
		c.WronglyAllowed += weight
	case !allowed && right:
		c.WronglyLimited += weight
	}
	off := math.Abs(estimate-float64(n)) / float64(n)
	c.errors += off * float64(weight)
	c.LargestError = max(c.LargestError, off)
	c.requests += weight
}

func (c *exactCount) result() *Counted {
	r := c.Counted
	r.WrongKeys = len(c.wrong)
	if c.requests > 0 {
		r.RateError = c.errors / float64(c.requests)
	}
	r.WrongRatio = ratio(r.WronglyAllowed+r.WronglyLimited, c.requests)
	return &r
}

// exactly returns the exact count for a key at time ms.
func (c *exactCount) exactly(k Key, ms int64) int64 {
	l := of(&c.logs, k.Number)
	l.forget(ms - c.window)
	return int64(l.len())
}
