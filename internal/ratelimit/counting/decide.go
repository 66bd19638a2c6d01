package counting

import (
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/slab"
)

// Take decides on n requests of the key at once. It counts them if every limit that applies has
// room for all n. Otherwise it changes nothing. An n below 1 means 1. Take decides and counts in
// one atomic step.
//
// [ratelimit.Enforce] and [ratelimit.DryRun] count in the same way. In the mode [ratelimit.Off], and
// for trusted clients, requests pass uncounted.
func (c *Counters) Take(now time.Time, k ratelimit.Key, e *ratelimit.Effective, n int64) (d ratelimit.Decision) {
	c.take(ratelimit.Millis(now), k, e, n, &d, false, false)
	return d
}

// Denies reports whether [Counters.Take] would deny one more request of the key. If so, it returns
// the decision of Take. It counts nothing and adds no key, so callers can use it before they check
// credentials, and skip work for a request that would be denied. A key that is not in memory is
// denied if its overflow counter is at the limit, or if there is no room for another overflow
// counter. Denies returns false if the key is in memory only under other limits, and in every mode
// except [ratelimit.Enforce].
func (c *Counters) Denies(now time.Time, k ratelimit.Key, e *ratelimit.Effective) (d ratelimit.Decision, denies bool) {
	if e.Mode != ratelimit.Enforce || e.Trusted {
		return d, false
	}
	var q request
	ls, overridden := e.Of(k.Bounded())
	q.init(c, k, ls, e, 1)
	ms, own, room := ratelimit.Millis(now), &q.parts[0], true
	if own.s != nil {
		own.s.mu.Lock()
		defer own.s.mu.Unlock()
		room = q.find(0, ms, false)
	}
	if !room {
		q.under(&d)
		d.DenyNoRoom()
	} else if room, _ = q.decide(ms, &d, false); d.Outcome == ratelimit.Allowed || room && own.strict() && own.lacking(ms, 1, false) > 0 {
		return ratelimit.Decision{}, false
	}
	d.Overridden = overridden
	d.Conclude(e)
	return d, true
}

// take is [Counters.Take]. It returns a waiter for a request that lacks only permits, if wait is set,
// or the first read of a key, if reads is set.
func (c *Counters) take(ms int64, k ratelimit.Key, e *ratelimit.Effective, n int64, d *ratelimit.Decision, wait, reads bool) (w *waiter) {
	switch {
	case e.Mode == ratelimit.Off:
		d.Outcome = ratelimit.Passed
		return nil
	case e.Trusted:
		d.Outcome = ratelimit.Trusted
		return nil
	}
	own := k.Bounded()
	ls := e.List(own)
	if e.HasOverrides() {
		ls, d.Overridden = e.Overriding(own)
	}
	if !ls.Counts(e.Grant()) {
		ls = nil
	}
	if ls == nil && e.Total == nil && e.SourceKey == "" {
		d.Outcome = ratelimit.Allowed // no limit counts it
		return nil
	}
	var s *shard // of the own key, locked; nil: the request has no such key
	var h slab.Hash
	var first uint32
	if ls != nil {
		s, h = c.lookupOwn(own)
		s.mu.Lock()
		if first = s.Find(h); first != 0 && s.HotOf(first).Limits != ls.Number {
			first = s.change(&c.queue, first, h, ls, ms)
		}
		if first != 0 && n <= 1 && e.Plain(ls) && s.decidePlain(first, ls, ms, d.Status(0), &d.Soft) && c.takePlain(s, first, k.ClientID, ls, e.Total, ms, d) {
			d.Conclude(e)
			return nil
		}
	}
	var q request
	q.c, q.n, q.grant, q.key, q.source = c, max(n, 1), e.Grant(), k, e.SourceKey
	q.reads = reads
	if p := &q.parts[0]; ls != nil {
		p.s, p.ls, p.hash, p.first, p.skip = s, ls, h, first, ls.Skip(e.Grant())
	}
	if e.Total != nil || e.SourceKey != "" {
		q.share(e)
	}
	w = q.take(ms, d, wait)
	d.Conclude(e)
	return w
}

// take is [Counters.take] for any request that limits count. The own key must be locked. It unlocks
// the key.
func (q *request) take(ms int64, d *ratelimit.Decision, wait bool) (w *waiter) {
	own := &q.parts[0]
	if own.s != nil && own.first == 0 {
		if own.first = own.s.addKey(q.keyOf(0), own.hash, own.ls, ms); own.first == 0 {
			own.s.mu.Unlock()
			q.under(d)
			d.DenyNoRoom()
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
		wake = q.read == nil && own.enqueue(&q.c.queue, d) || wake
		own.s.mu.Unlock()
	}
	if q.read != nil {
		return &waiter{request: *q}
	}
	if wake {
		q.c.queue.wake()
	}
	return w
}

// under sets the limits of a decision on the request.
func (q *request) under(d *ratelimit.Decision) {
	d.Under(q.parts[0].ls, q.parts[0].skip, q.parts[1].ls, q.parts[2].ls)
}

// strict reports whether requests need permits for a limit of the key.
func (p *part) strict() bool { return p.s != nil && p.ls.Strict }

// decide decides on the request under the limits of all its keys. If count is set, it counts the
// request if all of them admit it, and adds shared keys that are not in memory. The own key must be
// locked and found. room reports whether the shared keys have room, wake whether the syncer must be
// woken for them.
func (q *request) decide(ms int64, d *ratelimit.Decision, count bool) (room, wake bool) {
	q.under(d)
	var few [3]ratelimit.Frames // nearly every request; a smaller array is cheaper to clear
	fs := few[:]
	if d.Count() > len(few) {
		fs = make([]ratelimit.Frames, ratelimit.MaxDecided)
	}
	fs = fs[:d.Count()]
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
				d.DenyNoRoom()
				return false, false
			}
		}
		if q.reads && p.first != 0 {
			if q.read = p.firstRead(ms, 0); q.read != nil {
				q.leave(i, d, false)
				d.Outcome = ratelimit.Denied
				d.LackPermits()
				return false, false
			}
		}
		p.at = at
		at += len(p.ls.Rules)
		if !p.view(fs[p.at:at], ms, q.n, d) {
			admit, room = false, room && i == 0
		}
	}
	if d.Outcome = ratelimit.Allowed; count || !admit {
		d.Settle(fs, ms, q.n, admit)
	}
	if q.parts[1].s == nil && q.parts[2].s == nil {
		return room, false
	}
	return room, q.leave(len(q.parts)-1, d, count)
}

// leave unlocks the shared keys up to index last. If count is set, it queues their counters for the
// syncer, and reports whether the syncer must be woken.
func (q *request) leave(last int, d *ratelimit.Decision, count bool) (wake bool) {
	for i := last; i > 0; i-- {
		p := &q.parts[i]
		if p.s == nil {
			continue
		}
		if count && p.first != 0 {
			wake = p.enqueue(&q.c.queue, d) || wake
		}
		p.s.mu.Unlock()
	}
	return wake
}

// view fills fs from the counters that count the request, and reports whether they admit n
// requests. If the key is not in memory, its counts are zero. Entries of limits that do not count
// the request keep a nil rule.
func (p *part) view(fs []ratelimit.Frames, ms, n int64, d *ratelimit.Decision) bool {
	if p.first != 0 {
		p.s.HotOf(p.first).Seen = slab.Seconds(ms)
	}
	admit, num := true, p.first
	for i := range fs {
		r := &p.ls.Rules[i]
		if p.counts(i) {
			if num == 0 {
				fs[i] = ratelimit.Frames{Rule: r, Start: r.Newest(ms), Instances: 1}
			} else {
				p.s.view(&fs[i], num, r, ms, d)
			}
			admit = fs[i].Admits(r, n) && admit
		}
		if num != 0 {
			num = p.s.HotOf(num).Next
		}
	}
	return admit
}

// view advances a counter to ms and fills in its frames as a decision needs them. During an outage
// it applies the limit's OnOutage.
func (s *shard) view(f *ratelimit.Frames, num uint32, r *ratelimit.Rule, ms int64, d *ratelimit.Decision) {
	h := s.HotOf(num)
	if ms+r.LeadMS-h.Start >= r.FrameMS {
		s.shift(num, r, r.Newest(ms))
	}
	f.Rule, f.Slots, f.Start, f.Instances = r, s.Slots(h, r), h.Start, 1
	f.Sum(r)
	if r.Strict {
		s.viewStrict(f, num, r, ms, d)
	}
	if !r.Leases && (s.all.outage.mode.Load() != sharing || h.Flags.Has(slab.Failing)) {
		s.applyOutage(num, r, ms, f, d)
	}
	f.Used = f.Floor(r, ms)
}

// applyOutage applies the OnOutage of the limit to the frames of a counter if its requests cannot
// be shared.
func (s *shard) applyOutage(num uint32, r *ratelimit.Rule, ms int64, f *ratelimit.Frames, d *ratelimit.Decision) {
	if r.OnOutage == ratelimit.Memory || !s.cutOff(num, r, ms) {
		return
	}
	d.Outage = true
	if r.OnOutage == ratelimit.Deny {
		f.Instances = 0
		return
	}
	f.Instances = int64(s.all.outage.instances.Load())
	f.Sum(r)
}

// takePlain completes the decision of decidePlain on the own key. This is a fast path of take for one
// request under one plain limit, with or without a plain total. It takes half as long. takePlain
// unlocks the own key, or returns false and changes nothing if request.decide must decide.
func (c *Counters) takePlain(s *shard, first uint32, clientID string, ls, total *ratelimit.Limits, ms int64, d *ratelimit.Decision) bool {
	wake := false
	if total != nil {
		var ok bool
		if ok, wake = c.takePlainTotal(clientID, ls, total, ms, d); !ok {
			s.HotOf(first).Near[0].Count(-1)
			*d.Status(0), d.Soft = ratelimit.Status{}, false
			return false
		}
	}
	wake = s.enqueuePlain(&c.queue, first, d.Status(0)) || wake
	s.mu.Unlock()
	if wake {
		c.queue.wake()
	}
	d.Under(ls, 0, nil, total)
	d.Outcome = ratelimit.Allowed
	return true
}

// takePlainTotal decides under the total of a client. The lock of the total is held only as long as
// the lock of a single key, because all requests of the client need it.
func (c *Counters) takePlainTotal(clientID string, ls, total *ratelimit.Limits, ms int64, d *ratelimit.Decision) (ok, wake bool) {
	h := c.all.hashKey.Hash(ratelimit.Key{ClientID: clientID, Username: ratelimit.TotalUser}.Bounded())
	s := c.totalShard(h)
	s.mu.Lock()
	first := s.FindUnder(h, total)
	if ok = first != 0 && s.decidePlain(first, total, ms, d.Status(1), &d.Soft); ok {
		wake = s.enqueuePlain(&c.queue, first, d.Status(1))
	}
	s.mu.Unlock()
	if ok && int64(d.Status(1).Remaining)*ls.Rules[0].Requests < int64(d.Status(0).Remaining)*total.Rules[0].Requests {
		d.Binding = 1
	}
	return ok, wake
}

// decidePlain is a fast path of decide. It handles one request of a key with one sliding limit and
// one frame per window, if the limit has room and counts are shared. It fills in st, and sets soft
// if the client should be warned. Otherwise it returns false and changes nothing.
func (s *shard) decidePlain(num uint32, ls *ratelimit.Limits, ms int64, st *ratelimit.Status, soft *bool) bool {
	h, r := s.HotOf(num), &ls.Rules[0]
	elapsed := ms - h.Start
	if elapsed < 0 || elapsed >= r.FrameMS || h.Flags.Has(slab.Failing) || s.unread(h, h.Near[:], 0) || s.all.outage.mode.Load() != sharing {
		return false
	}
	whole, oldest := h.Near[0].Total(1), h.Near[1].Total(1)
	used := whole + (r.FrameMS-elapsed)*oldest/r.FrameMS
	if used >= r.Requests {
		return false
	}
	h.Near[0].Count(1)
	h.Seen = slab.Seconds(ms)
	whole++
	used++
	if used >= r.SoftAt {
		*soft = true
	}
	st.Remaining = ratelimit.Clamp(r.Requests - used)
	free := r.FrameMS // from the frame's start, until the estimate falls below used
	if whole < used {
		free = ratelimit.ShrunkBelow(oldest, used-whole, r.FrameMS, elapsed)
	}
	if free >= r.FrameMS { // after the next frame has begun; this one is then the oldest
		free = r.FrameMS + ratelimit.ShrunkBelow(whole, used, r.FrameMS, 0)
	}
	st.Reset = ratelimit.Clamp(ratelimit.CeilSeconds(free - elapsed))
	return true
}

// enqueuePlain is enqueue after decidePlain.
func (s *shard) enqueuePlain(q *queue, num uint32, st *ratelimit.Status) (wake bool) {
	h := s.HotOf(num)
	if !q.attached || h.State >= slab.Urgent || h.Flags.Has(slab.Pooled) {
		return false
	}
	u := slab.Lazy
	if s.urgent(h, int64(h.Near[0].Unclaimed)+int64(h.Near[1].Unclaimed), int64(st.Remaining)) {
		u = slab.Urgent
	}
	if u <= h.State {
		return false
	}
	h.State = u
	s.push(q, num)
	return u == slab.Urgent
}
