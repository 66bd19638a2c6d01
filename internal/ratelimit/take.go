package ratelimit

import (
	"math"
	"time"
)

// Never is the RetryAfter of a request for more than the limit ever admits.
const Never = time.Duration(math.MaxInt64)

// Take decides on n requests of the key at once. It counts them if every limit that applies has
// room for all n. Otherwise it changes nothing. An n below 1 means 1. Take decides and counts in
// one atomic step.
//
// [Enforce] and [DryRun] count in the same way. In the mode [Off], and for trusted clients,
// requests pass uncounted.
func (c *Counters) Take(now time.Time, k Key, e *Effective, n int64) (d Decision) {
	switch {
	case e.Mode == Off:
		d.Outcome = Passed
		return d
	case e.Trusted:
		d.Outcome = Trusted
		return d
	}
	clientID := k.ClientID
	k = k.bounded()
	ls := e.list(k)
	if e.overrides != nil {
		ls, d.Overridden = e.override(k)
	}
	if e.simple(ls) {
		c.take(millis(now), k, ls, max(n, 1), &d)
	} else {
		c.takeMore(millis(now), k, clientID, ls, e, max(n, 1), &d, false)
	}
	d.conclude(e)
	return d
}

// simple reports whether every limit of ls counts the request, no other limit counts it, and it
// cannot wait for permits. It is inlined.
func (e *Effective) simple(ls *Limits) bool {
	return ls != nil && !ls.strict && e.Total == nil && e.source == "" && (e.grant == 0 || !ls.grants)
}

// takeMore is take for a request that is not simple.
func (c *Counters) takeMore(ms int64, k Key, clientID string, ls *Limits, e *Effective, n int64, d *Decision, wait bool) *waiter {
	if n == 1 && e.onlyPlainTotal(k, clientID, ls) && c.takePlainTotal(ms, k, ls, e.Total, d) {
		return nil
	}
	q := c.requestOf(k, clientID, ls, e)
	if q.ls == nil && q.lists[0] == nil && q.lists[1] == nil {
		d.Outcome = Allowed // no limit counts it
		return nil
	}
	return c.takeAll(ms, &q, n, d, wait)
}

// conclude completes a decision with the other settings of the policy.
func (d *Decision) conclude(e *Effective) {
	d.hide = e.HideHeaders || e.Mode == DryRun
	if d.Outcome == Denied && e.Mode == DryRun {
		d.Outcome = WouldDeny
	}
}

// take decides and counts. It wakes the syncer if a counter became urgent.
func (c *Counters) take(ms int64, k Key, ls *Limits, n int64, d *Decision) {
	s, h := c.lookupOwn(k)
	s.mu.Lock()
	first := s.find(h)
	switch {
	case first == 0:
		if first = s.addKey(k, h, ls, ms); first == 0 { // no room at all: see overflow.go
			s.mu.Unlock()
			d.denyNoRoom(&request{ls: ls})
			return
		}
	case s.hotOf(first).limits != ls.number:
		first = s.change(&c.queue, first, h, ls, ms)
	}
	var wake bool
	if ls.plain && n == 1 && s.decidePlain(first, ls, ms, &d.status[0], &d.Soft) {
		d.limits, d.Outcome = ls, Allowed
		wake = c.queue.attached && s.enqueuePlain(&c.queue, first, &d.status[0])
	} else {
		mine := side{s: s, first: first, ls: ls}
		mine.decideAlone(ms, n, d)
		wake = c.queue.attached && mine.enqueue(&c.queue, d.status[:], d.Outcome)
	}
	s.mu.Unlock()
	if wake {
		c.queue.wake()
	}
}

// decidePlain is a fast path of decide. It handles one request of a key with one sliding limit and
// one frame per window, if the limit has room and counts are shared. It fills in st, and sets soft
// if the client should be warned. Otherwise it returns false and changes nothing.
func (s *shard) decidePlain(num uint32, ls *Limits, ms int64, st *status, soft *bool) bool {
	h, r := s.hotOf(num), &ls.rules[0]
	elapsed := ms - h.start
	if elapsed < 0 || elapsed >= r.frame || h.flags.has(failing) || s.all.outage.mode.Load() != sharing {
		return false
	}
	whole, oldest := h.near[0].total(1), h.near[1].total(1)
	used := whole + (r.frame-elapsed)*oldest/r.frame
	if used >= r.Requests {
		return false
	}
	h.near[0].count(1)
	h.seen = seconds(ms)
	whole++
	used++
	if used >= r.softAt {
		*soft = true
	}
	st.remaining = clamp(r.Requests - used)
	free := r.frame // from the frame's start, until the estimate falls below used
	if whole < used {
		free = shrunkBelow(oldest, used-whole, r.frame, elapsed)
	}
	if free >= r.frame { // after the next frame has begun; this one is then the oldest
		free = r.frame + shrunkBelow(whole, used, r.frame, 0)
	}
	st.reset = clamp(ceilSeconds(free - elapsed))
	return true
}

// decideAlone decides on n requests under all limits of a key, and counts them if they pass.
func (o *side) decideAlone(ms, n int64, d *Decision) {
	d.limits = o.ls
	if len(o.ls.rules) <= 3 { // nearly every key; a smaller array is cheaper to clear
		var few [3]frames
		fs := few[:len(o.ls.rules)]
		d.settle(fs, ms, n, o.view(fs, ms, n, d))
		return
	}
	var all [MaxLimits]frames
	fs := all[:len(o.ls.rules)]
	d.settle(fs, ms, n, o.view(fs, ms, n, d))
}

// view fills fs from the counters that count the request, and reports whether they admit n
// requests. If the key is not in memory, its counts are zero. Entries of limits that do not count
// the request keep a nil rule.
func (o *side) view(fs []frames, ms, n int64, d *Decision) bool {
	if o.first != 0 {
		o.s.hotOf(o.first).seen = seconds(ms)
	}
	admit, num := true, o.first
	for i := range fs {
		r := &o.ls.rules[i]
		if o.counts(i) {
			if num == 0 {
				fs[i] = frames{rule: r, slots: make([]slot, r.frames()), start: r.newest(ms), instances: 1}
			} else {
				o.s.view(&fs[i], num, r, ms, d)
			}
			admit = fs[i].admits(r, n) && admit
		}
		if num != 0 {
			num = o.s.hotOf(num).next
		}
	}
	return admit
}

// settle completes the decision on n requests from the frames of their limits. It counts them if
// they are admitted.
func (d *Decision) settle(all []frames, ms, n int64, admit bool) {
	d.Outcome, d.Binding = Allowed, d.firstApplied()
	if !admit {
		d.Outcome = Denied
		d.RetryAfter, d.Binding = retryAfter(all, ms, n)
	}
	for i := range all {
		if all[i].rule != nil {
			all[i].record(ms, n, i, d)
		}
	}
}

// view advances a counter to ms and fills in its frames as a decision needs them. During an outage
// it applies the limit's OnOutage.
func (s *shard) view(f *frames, num uint32, r *rule, ms int64, d *Decision) {
	s.advance(num, r, ms)
	f.rule = r
	s.fill(f, num, r)
	if r.Strict {
		s.viewStrict(f, num, r, ms, d)
	}
	if !r.leases && (s.all.outage.mode.Load() != sharing || s.hotOf(num).flags.has(failing)) {
		s.applyOutage(num, r, ms, f, d)
	}
	f.used = f.floor(r, ms)
}

// admits reports whether n more requests fit.
func (f *frames) admits(r *rule, n int64) bool {
	if f.lease != nil {
		return n <= f.usable
	}
	return f.instances > 0 && n <= r.Requests && (n-1)*f.instances < r.Requests-f.used
}

// record counts n requests if they were admitted, and fills in the status of limit i. There is room
// for one more request when the estimate falls below its present value, rounded down.
func (f *frames) record(ms, n int64, i int, d *Decision) {
	r := f.rule
	if d.Outcome == Allowed {
		switch {
		case f.lease != nil:
			f.useLease(n)
		case r.Strict: // without permits; the newest frame is the next one
			f.slots[1].count(n)
			f.whole += n
		default:
			f.count(n)
		}
		f.used = f.floor(r, ms)
	} else if f.instances > 0 && !f.admits(r, n) {
		d.exceeded |= 1 << i
	}
	st := &d.status[i]
	if f.instances == 0 {
		st.reset = clamp(ceilSeconds(outageRetry.Milliseconds()))
		return
	}
	if f.used > 0 {
		free, target := f.free, min(f.used, r.Requests)
		if free == 0 || target != f.target {
			free = f.firstBelow(r, ms, target)
		}
		st.reset = clamp(ceilSeconds(free - ms))
	}
	if room := r.Requests - f.used; room > 0 {
		if f.instances > 1 {
			room = (room + f.instances - 1) / f.instances
		}
		st.remaining = clamp(room)
	}
	if f.used >= r.softAt {
		d.Soft = true
	}
	if d.Outcome == Allowed && i > d.Binding && d.tighter(i) {
		d.Binding = i
	}
}

// applyOutage applies the OnOutage of the limit to the frames of a counter if its requests cannot
// be shared.
func (s *shard) applyOutage(num uint32, r *rule, ms int64, f *frames, d *Decision) {
	if r.OnOutage == Memory || !s.cutOff(num, r, ms) {
		return
	}
	d.Outage = true
	if r.OnOutage == Deny {
		f.instances = 0
		return
	}
	f.instances = int64(s.all.outage.instances.Load())
	f.sum()
}

// retryAfter returns how long to wait until n requests pass all limits, and the index of the limit
// that takes longest. It repeats until no limit moves the time on, because a weighted estimate can
// rise again while another limit still lacks room. Frames without a rule are skipped.
func retryAfter(all []frames, ms, n int64) (wait time.Duration, binding int) {
	for binding < len(all)-1 && all[binding].rule == nil {
		binding++
	}
	free := ms
	for moved := true; moved; {
		moved = false
		for i := range all {
			f, r := &all[i], all[i].rule
			if r == nil {
				continue
			}
			if f.instances == 0 {
				return outageRetry, i
			}
			if n > r.Requests {
				return Never, i
			}
			target := r.Requests - (n-1)*f.instances
			if target < 1 { // more than the share of this instance
				return outageRetry, i
			}
			t := f.firstBelow(r, free, target)
			if free == ms {
				f.free, f.target = t, target
			}
			if t > free {
				free, binding, moved = t, i, len(all) > 1
			}
		}
	}
	return time.Duration(free-ms) * time.Millisecond, binding
}
