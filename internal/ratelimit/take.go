package ratelimit

import (
	"math"
	"time"
)

// Never is the RetryAfter of a request that asks for more than a limit ever admits.
const Never = time.Duration(math.MaxInt64)

// Take asks for n requests of the key at once, and counts them if every limit
// that applies has room for all of them; otherwise it changes nothing. An n
// below 1 counts as 1. Deciding and counting is one atomic step.
//
// What is counted in Enforce and in DryRun is the same. A trusted client and
// the mode Off are passed without being counted.
func (c *Counters) Take(now time.Time, k Key, e *Effective, n int64) (d Decision) {
	switch {
	case e.Mode == Off:
		d.Outcome = Passed
		return d
	case e.Trusted:
		d.Outcome = Trusted
		return d
	}
	k = k.bounded()
	c.take(c.millis(now), k, e.For(k), max(n, 1), &d)
	d.hide = e.HideHeaders || e.Mode == DryRun
	if d.Outcome == Denied && e.Mode == DryRun {
		d.Outcome = WouldDeny
	}
	return d
}

func (c *Counters) take(ms int64, k Key, ls *Limits, n int64, d *Decision) {
	hash := k.hash(c.seed)
	s := c.shardOf(hash)
	s.mu.Lock()
	e := s.find(hash, k)
	if e == nil {
		e = s.admit(hash, k, ls, ms)
	}
	if e == nil { // no room at all: see overflow.go
		s.mu.Unlock()
		overfull(ls, d)
		return
	}
	if e.limits != ls {
		e = s.change(hash, e, ls, ms)
	}
	e.take(ms, n, d)
	wake := c.syncer.attached && !e.shared && c.enqueue(s, e, d)
	s.mu.Unlock()
	if wake {
		c.syncer.wake()
	}
}

// take decides and counts for all limits of the key.
func (e *entry) take(ms, n int64, d *Decision) {
	rules := e.limits.rules
	d.limits, e.seen = e.limits, ms
	var at [MaxLimits]int64
	admit := true
	for i := range rules {
		r, c := &rules[i], e.at(i)
		at[i] = c.observe(r, ms)
		if c.floor(r, at[i])+n > r.Requests {
			admit = false
		}
	}
	if admit {
		d.Outcome = Allowed
		for i := range rules {
			e.at(i).count(n)
		}
	} else {
		d.Outcome = Denied
		d.RetryAfter, d.Binding = e.retryAfter(ms, n)
	}
	for i := range rules {
		e.at(i).describe(&rules[i], ms, at[i], i, d)
	}
}

// describe fills in what the client is told about one limit. A unit becomes
// free when the estimate falls below what it is rounded down to now.
func (c *Counter) describe(r *rule, ms, at int64, i int, d *Decision) {
	used := c.floor(r, at)
	st := &d.status[i]
	if used > 0 {
		free := c.firstBelow(r, at, min(used, r.Requests))
		st.reset = clamp(ceilSeconds(free - ms))
	}
	if used < r.Requests {
		st.remaining = clamp(r.Requests - used)
	}
	if used >= r.softAt {
		d.Soft = true
	}
	if d.Outcome == Allowed && d.tighter(i) {
		d.Binding = i
	}
}

// retryAfter returns how long to wait until n requests pass all limits, and
// which limit lasts the longest. It goes round until no limit moves the time on:
// the weighted estimate can rise again while another limit is waited for.
func (e *entry) retryAfter(ms, n int64) (wait time.Duration, binding int) {
	rules := e.limits.rules
	free := ms
	for moved := true; moved; {
		moved = false
		for i := range rules {
			r, c := &rules[i], e.at(i)
			if n > r.Requests {
				return Never, i
			}
			from := max(free, c.at) // its own time may be ahead of ours
			if t := c.firstBelow(r, from, r.Requests-n+1); t > from {
				free, binding, moved = t, i, true
			}
		}
	}
	return time.Duration(free-ms) * time.Millisecond, binding
}
