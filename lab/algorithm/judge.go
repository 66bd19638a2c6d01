package algorithm

import (
	"math"

	"oauth-server/internal/simulate/traffic"
)

// judge compares decisions with the exact log of admitted requests.
type judge struct {
	limit, window    int64
	logs             []log
	requests, tokens peak
}

func newJudge(o Options) judge {
	per := o.Per.Milliseconds()
	return judge{
		limit: o.Limit.Requests, window: o.Limit.Window.Milliseconds(),
		requests: peak{every: per, now: map[int64]int64{}}, tokens: peak{every: per, now: map[int64]int64{}},
	}
}

// judge checks a decision on a request that stands for weight requests, and records it in r.
func (j *judge) judge(k Key, ms int64, a traffic.Answer, weight int64, r *Result) {
	l := of(&j.logs, k.Number)
	l.forget(ms - j.window)
	r.Requests += weight
	j.requests.add(ms, ms)
	r.Spike.Requests = j.requests.most
	if a.Refused() {
		r.Denied += weight
		if free := j.limit - int64(l.len()); free > 0 {
			r.FalseDenials += weight
			r.Far += weight * j.far(free)
		}
		return
	}
	r.Admitted += weight
	at := ms + a.Wait.Milliseconds()
	if a.Outcome == traffic.Delayed {
		r.Delayed += weight
		r.LongestWait = max(r.LongestWait, a.Wait.Seconds())
	}
	l.add(at)
	n := int64(l.after(at - j.window))
	if over := n - j.limit; over > 0 {
		r.FalseAdmits += weight
		r.Far += weight * j.far(over)
	}
	r.WorstWindow = max(r.WorstWindow, n)
	j.tokens.add(ms, at)
	r.Spike.Tokens = j.tokens.most
}

// far returns 1 if requests is more than FarPercent of the limit, otherwise 0.
func (j *judge) far(requests int64) int64 {
	if 100*requests > FarPercent*j.limit {
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

// counting compares an estimate with the exact count of all requests.
type counting struct {
	Estimator
	limit, window int64
	logs          []log

	Counted
	requests              int64
	errors                float64 // sum
	counts, near, tooMany int64
	highestWrongly        int64
	wrong                 map[uint64]struct{} // hashes of keys
}

func newCounting(e Estimator, l Limit) *counting {
	return &counting{Estimator: e, limit: l.Requests, window: l.Window.Milliseconds(), wrong: map[uint64]struct{}{}}
}

// count counts a request that stands for weight requests. The estimate and the exact count both
// include the request itself.
func (c *counting) count(k Key, ms, weight int64) {
	l := of(&c.logs, k.Number)
	l.forget(ms - c.window)
	estimate := c.Estimate(k, ms) + 1
	c.Count(k, ms)
	l.add(ms)
	n := int64(l.len())
	allowed, right := int64(math.Floor(estimate)) <= c.limit, n <= c.limit
	if allowed != right {
		c.wrong[k.hash] = struct{}{}
	}
	switch {
	case allowed && !right:
		c.WronglyAllowed += weight
		c.highestWrongly = max(c.highestWrongly, n)
	case !allowed && right:
		c.WronglyLimited += weight
	}
	off := math.Abs(estimate-float64(n)) / float64(n)
	c.errors += off * float64(weight)
	c.LargestError = max(c.LargestError, off)
	c.requests += weight
	c.counts += n * weight
	if !right {
		c.tooMany += weight
	}
	if d := n - c.limit; 100*max(d, -d) <= FarPercent*c.limit {
		c.near += weight
	}
}

func (c *counting) result() *Counted {
	r := c.Counted
	r.WrongKeys = len(c.wrong)
	if n := float64(c.requests); n > 0 {
		r.RateError, r.MeanCount = c.errors/n, float64(c.counts)/n
	}
	r.NearLimit, r.OverRatio = ratio(c.near, c.requests), ratio(c.tooMany, c.requests)
	r.WrongRatio = ratio(r.WronglyAllowed+r.WronglyLimited, c.requests)
	r.LargestOver = ratio(c.highestWrongly, c.limit)
	return &r
}

// exactly returns the exact count for a key at time ms.
func (c *counting) exactly(k Key, ms int64) int64 {
	l := of(&c.logs, k.Number)
	l.forget(ms - c.window)
	return int64(l.len())
}
