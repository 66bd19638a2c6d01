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
	c.take(millis(now), k, e, n, &d, false)
	return d
}

// Denies reports whether [Counters.Take] would deny one more request of the key. If so, it returns
// the decision of Take. It counts nothing and adds no key, so callers can use it before they check
// credentials, and skip work for a request that would be denied. A key that is not in memory is
// denied if its overflow counter is at the limit, or if there is no room for another overflow
// counter. Denies returns false if the key is in memory only under other limits, and in every mode
// except [Enforce].
func (c *Counters) Denies(now time.Time, k Key, e *Effective) (d Decision, denies bool) {
	if e.Mode != Enforce || e.Trusted {
		return d, false
	}
	var q request
	ls, overridden := e.of(k.bounded())
	q.init(c, k, ls, e, 1)
	ms, own, room := millis(now), &q.parts[0], true
	if own.s != nil {
		own.s.mu.Lock()
		defer own.s.mu.Unlock()
		room = q.find(0, ms, false)
	}
	if !room {
		d.denyNoRoom(&q)
	} else if room, _ = q.decide(ms, &d, false); d.Outcome == Allowed || room && own.strict() && own.lacking(ms, 1, false) > 0 {
		return Decision{}, false
	}
	d.hide, d.Overridden = e.HideHeaders, overridden
	return d, true
}

// take is [Counters.Take]. If wait is set, it returns a waiter for a request that lacks only
// permits.
func (c *Counters) take(ms int64, k Key, e *Effective, n int64, d *Decision, wait bool) (w *waiter) {
	switch {
	case e.Mode == Off:
		d.Outcome = Passed
		return nil
	case e.Trusted:
		d.Outcome = Trusted
		return nil
	}
	own := k.bounded()
	ls := e.list(own)
	if e.overrides != nil {
		ls, d.Overridden = e.override(own)
	}
	if !ls.counts(e.grant) {
		ls = nil
	}
	if ls == nil && e.Total == nil && e.source == "" {
		d.Outcome = Allowed // no limit counts it
		return nil
	}
	var s *shard // of the own key, locked; nil: the request has no such key
	var h hash
	var first uint32
	if ls != nil {
		s, h = c.lookupOwn(own)
		s.mu.Lock()
		if first = s.find(h); first != 0 && s.hotOf(first).limits != ls.number {
			first = s.change(&c.queue, first, h, ls, ms)
		}
		if first != 0 && n <= 1 && e.plain(ls) && s.decidePlain(first, ls, ms, &d.status[0], &d.Soft) && c.takePlain(s, first, k.ClientID, ls, e.Total, ms, d) {
			d.hide = e.HideHeaders || e.Mode == DryRun
			return nil
		}
	}
	var q request
	q.c, q.n, q.grant, q.key, q.source = c, max(n, 1), e.grant, k, e.source
	if p := &q.parts[0]; ls != nil {
		p.s, p.ls, p.hash, p.first, p.skip = s, ls, h, first, ls.skip(e.grant)
	}
	if e.Total != nil || e.source != "" {
		q.share(e)
	}
	w = q.take(ms, d, wait)
	d.conclude(e)
	return w
}

// conclude completes a decision with the other settings of the policy.
func (d *Decision) conclude(e *Effective) {
	d.hide = e.HideHeaders || e.Mode == DryRun
	if d.Outcome == Denied && e.Mode == DryRun {
		d.Outcome = WouldDeny
	}
}

// take is [Counters.take] for any request that limits count. The own key must be locked. It unlocks
// the key.
func (q *request) take(ms int64, d *Decision, wait bool) (w *waiter) {
	own := &q.parts[0]
	if own.s != nil && own.first == 0 {
		if own.first = own.s.addKey(q.keyOf(0), own.hash, own.ls, ms); own.first == 0 {
			own.s.mu.Unlock()
			d.denyNoRoom(q)
			return nil
		}
	}
	var wake bool
	if own.strict() {
		w, wake = q.takeStrict(ms, d, wait)
	} else {
		_, wake = q.decide(ms, d, true)
	}
	if own.s != nil {
		wake = own.enqueue(&q.c.queue, d.status[:], d.Outcome) || wake
		own.s.mu.Unlock()
	}
	if wake {
		q.c.queue.wake()
	}
	return w
}

// noLimits is the list of a key that does not exist.
var noLimits = &Limits{}

// strict reports whether requests need permits for a limit of the key.
func (p *part) strict() bool { return p.s != nil && p.ls.strict }

// decide decides on the request under the limits of all its keys. If count is set, it counts the
// request if all of them admit it, and adds shared keys that are not in memory. The own key must be
// locked and found. room reports whether the shared keys have room, wake whether the syncer must be
// woken for them.
func (q *request) decide(ms int64, d *Decision, count bool) (room, wake bool) {
	d.limits, d.skip = q.parts[0].ls, q.parts[0].skip
	d.source, d.total = q.parts[1].ls, q.parts[2].ls
	if d.limits == nil {
		d.limits = noLimits
	}
	var few [3]frames // nearly every request; a smaller array is cheaper to clear
	fs := few[:]
	if d.count() > len(few) {
		fs = make([]frames, maxDecided)
	}
	fs = fs[:d.count()]
	admit, at := true, 0
	room = true
	for i := range q.parts {
		p := &q.parts[i]
		if p.s == nil {
			continue
		}
		if i > 0 {
			p.s.mu.Lock()
			add := count && (admit || p.s.kind != ofSources) // a denied request adds no source
			if !q.find(i, ms, add) && (add || admit) {
				q.leave(i, d, false)
				d.denyNoRoom(q)
				return false, false
			}
		}
		p.at = at
		at += len(p.ls.rules)
		if !p.view(fs[p.at:at], ms, q.n, d) {
			admit, room = false, room && i == 0
		}
	}
	if d.Outcome = Allowed; count || !admit {
		d.settle(fs, ms, q.n, admit)
	}
	if d.source == nil && d.total == nil {
		return room, false
	}
	return room, q.leave(len(q.parts)-1, d, count)
}

// leave unlocks the shared keys up to index last. If count is set, it queues their counters for the
// syncer, and reports whether the syncer must be woken.
func (q *request) leave(last int, d *Decision, count bool) (wake bool) {
	for i := last; i > 0; i-- {
		p := &q.parts[i]
		if p.s == nil {
			continue
		}
		if count && p.first != 0 {
			wake = p.enqueue(&q.c.queue, d.status[p.at:], d.Outcome) || wake
		}
		p.s.mu.Unlock()
	}
	return wake
}

// view fills fs from the counters that count the request, and reports whether they admit n
// requests. If the key is not in memory, its counts are zero. Entries of limits that do not count
// the request keep a nil rule.
func (p *part) view(fs []frames, ms, n int64, d *Decision) bool {
	if p.first != 0 {
		p.s.hotOf(p.first).seen = seconds(ms)
	}
	admit, num := true, p.first
	for i := range fs {
		r := &p.ls.rules[i]
		if p.counts(i) {
			if num == 0 {
				fs[i] = frames{rule: r, start: r.newest(ms), instances: 1}
			} else {
				p.s.view(&fs[i], num, r, ms, d)
			}
			admit = fs[i].admits(r, n) && admit
		}
		if num != 0 {
			num = p.s.hotOf(num).next
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
	h := s.hotOf(num)
	if ms+r.lead-h.start >= r.frame {
		s.shift(num, r, r.newest(ms))
	}
	f.rule, f.slots, f.start, f.instances = r, s.slots(h, r), h.start, 1
	if r.Strict {
		f.sumStrict()
		s.viewStrict(f, num, r, ms, d)
	} else {
		f.sum()
	}
	if !r.leases && (s.all.outage.mode.Load() != sharing || h.flags.has(failing)) {
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

// room returns how many more requests fit, as far as this process knows.
func (f *frames) room(r *rule) int64 {
	room := max(r.Requests-f.used, 0)
	switch f.instances {
	case 0:
		return 0
	case 1:
		return room
	}
	return (room + f.instances - 1) / f.instances
}

// countAdmitted counts n requests that were admitted.
func (f *frames) countAdmitted(r *rule, n int64) {
	switch {
	case f.lease != nil:
		f.useLease(n)
	case r.Strict: // without permits; the newest frame is the next one
		f.slots[1].count(n)
		f.whole += n
	default:
		f.count(n)
	}
}

// record counts n requests if they were admitted, and fills in the status of limit i. There is room
// for one more request when the estimate falls below its present value, rounded down.
func (f *frames) record(ms, n int64, i int, d *Decision) {
	r := f.rule
	if d.Outcome == Allowed {
		f.countAdmitted(r, n)
		if f.used += n * f.instances; r.Algorithm == Weighted {
			f.used = f.floor(r, ms)
		}
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
	st.remaining = clamp(f.room(r))
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

// denyNoRoom denies a request because one of its keys has no counter, not even an overflow counter.
// A key that cannot be counted must not pass without a limit.
func (d *Decision) denyNoRoom(q *request) {
	d.limits, d.source, d.total = noLimits, q.parts[1].ls, q.parts[2].ls
	if own := &q.parts[0]; own.s != nil {
		d.limits, d.skip = own.ls, own.skip
	}
	d.Outcome, d.Binding = Denied, d.firstApplied()
	d.RetryAfter = d.rule(d.Binding).Window
	for i := range d.count() {
		d.status[i].reset = clamp(ceilSeconds(d.rule(i).window))
	}
}

// plain reports whether takePlain can decide under the list. It is inlined.
func (e *Effective) plain(ls *Limits) bool {
	return ls.plain && (e.Total == nil || e.Total.plain) && e.source == ""
}

// takePlain completes the decision of decidePlain on the own key. This is a fast path of take for one
// request under one plain limit, with or without a plain total. It takes half as long. takePlain
// unlocks the own key, or returns false and changes nothing if request.decide must decide.
func (c *Counters) takePlain(s *shard, first uint32, clientID string, ls, total *Limits, ms int64, d *Decision) bool {
	wake := false
	if total != nil {
		var ok bool
		if ok, wake = c.takePlainTotal(clientID, ls, total, ms, d); !ok {
			s.hotOf(first).near[0].count(-1)
			d.status[0], d.Soft = status{}, false
			return false
		}
	}
	wake = s.enqueuePlain(&c.queue, first, &d.status[0]) || wake
	s.mu.Unlock()
	if wake {
		c.queue.wake()
	}
	d.limits, d.Outcome = ls, Allowed
	return true
}

// takePlainTotal decides under the total of a client. The lock of the total is held only as long as
// the lock of a single key, because all requests of the client need it.
func (c *Counters) takePlainTotal(clientID string, ls, total *Limits, ms int64, d *Decision) (ok, wake bool) {
	h := c.all.hashKey.hash(Key{clientID, TotalUser}.bounded())
	s := c.totalShard(h)
	s.mu.Lock()
	first := s.findUnder(h, total)
	if ok = first != 0 && s.decidePlain(first, total, ms, &d.status[1], &d.Soft); ok {
		wake = s.enqueuePlain(&c.queue, first, &d.status[1])
	}
	s.mu.Unlock()
	if d.total = total; ok && int64(d.status[1].remaining)*ls.rules[0].Requests < int64(d.status[0].remaining)*total.rules[0].Requests {
		d.Binding = 1
	}
	return ok, wake
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

// enqueuePlain is enqueue after decidePlain.
func (s *shard) enqueuePlain(q *queue, num uint32, st *status) (wake bool) {
	h := s.hotOf(num)
	if !q.attached || h.state >= urgent || h.flags.has(pooled) {
		return false
	}
	u := lazy
	if h.flags.has(unsynced|stale) || s.matters(h, int64(h.near[0].unclaimed)+int64(h.near[1].unclaimed), int64(st.remaining)) {
		u = urgent
	}
	if u <= h.state {
		return false
	}
	h.state = u
	s.push(q, num)
	return u == urgent
}
