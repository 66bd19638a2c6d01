package ratelimit

import (
	"iter"
	"time"
)

// A request counts against up to three keys: its own key (the user or the client), the key of its
// source address, and the key of the total (the client over all its users). One decision holds the
// locks of all of them, taken in the order of their shards. So no goroutine sees one key counted
// without the others.

// side is one of the keys of a decision: its first counter and its limits. The lock of its shard
// must be held.
type side struct {
	s     *shard  // nil: there is no such key
	first uint32  // 0: it is not in memory
	ls    *Limits // noLimits if there is no such key
	skip  uint16  // bit i: limit i does not count the request
}

// list returns the limits of a shared key, or nil if there is no such key.
func (o *side) list() *Limits {
	if o.s == nil {
		return nil
	}
	return o.ls
}

// counts reports whether limit i counts the request.
func (o *side) counts(i int) bool { return o.skip>>i&1 == 0 }

// applied yields the counters of a key that count the request, with their rules.
func (o *side) applied() iter.Seq2[uint32, *rule] {
	return func(yield func(uint32, *rule) bool) {
		num := o.first
		for i := range o.ls.rules {
			if o.counts(i) && !yield(num, &o.ls.rules[i]) {
				return
			}
			num = o.s.hotOf(num).next
		}
	}
}

// whole returns a side with all limits of the key.
func (s *shard) whole(first uint32) *side {
	return &side{s: s, first: first, ls: limitsOf(s.hotOf(first).limits)}
}

// noLimits is the list of a key that does not exist.
var noLimits = &Limits{}

// sides are the three keys of a decision, in the order of their shards: own, source, total.
type sides [3]side

// unlock releases the locks of the keys from index from on.
func (all *sides) unlock(from int) {
	for i := len(all) - 1; i >= from; i-- {
		if all[i].s != nil {
			all[i].s.mu.Unlock()
		}
	}
}

// request has the keys of a request and finds their counters.
type request struct {
	c     *Counters
	grant Grants
	ls    *Limits // of the own key, or nil
	own   place
	// shared are the keys of the source and the total.
	shared [2]place
	lists  [2]*Limits // their lists; nil: they do not count the request
}

// place is the location of a key.
type place struct {
	shard *shard
	hash  hash
	key   Key // bounded
}

// requestOf returns the request for a bounded key under its list. clientID is the ClientID of the
// key before it was bounded.
func (c *Counters) requestOf(k Key, clientID string, ls *Limits, e *Effective) (q request) {
	q.c, q.grant = c, e.grant
	if ls != nil && ls.skip(e.grant) != ls.every() {
		q.ls, q.own.key = ls, k
		q.own.shard, q.own.hash = c.lookup(k)
	}
	if e.source != "" {
		q.share(0, Key{ClientID: clientID, Username: e.source}, e.Source)
	}
	if e.Total != nil {
		q.share(1, Key{ClientID: clientID, Username: TotalUser}, e.Total)
	}
	return q
}

func (q *request) share(i int, k Key, ls *Limits) {
	p := place{key: k.bounded()}
	p.shard, p.hash = q.c.lookup(p.key)
	q.shared[i], q.lists[i] = p, ls
}

// every returns a mask with a bit for each limit of the list.
func (ls *Limits) every() uint16 { return 1<<len(ls.rules) - 1 }

// skip returns a mask of the limits that do not count requests of the grant.
func (ls *Limits) skip(grant Grants) (skip uint16) {
	if !ls.grants {
		return 0
	}
	for i := range ls.rules {
		if !ls.rules[i].Grants.Count(grant) {
			skip |= 1 << i
		}
	}
	return skip
}

// enter returns the first counter of a key under the limits. It adds the key if necessary, and
// returns 0 if there is no room for it.
func (s *shard) enter(q *queue, k Key, h hash, ls *Limits, ms int64) uint32 {
	first := s.find(h)
	switch {
	case first == 0:
		return s.addKey(k, h, ls, ms)
	case s.hotOf(first).limits != ls.number:
		return s.change(q, first, h, ls, ms)
	}
	return first
}

// takeAll is take for a request that several lists count, that only some of its own limits count,
// or that may wait for permits.
func (c *Counters) takeAll(ms int64, q *request, n int64, d *Decision, wait bool) (w *waiter) {
	mine := side{ls: noLimits}
	if s := q.own.shard; s != nil {
		s.mu.Lock()
		mine = side{s, s.enter(&c.queue, q.own.key, q.own.hash, q.ls, ms), q.ls, q.ls.skip(q.grant)}
		if mine.first == 0 {
			s.mu.Unlock()
			d.denyNoRoom(q)
			return nil
		}
	}
	var wake bool
	if mine.ls.strict {
		w, wake = mine.takeStrict(q, ms, n, d, wait)
	} else {
		_, wake = mine.decide(q, ms, n, d)
	}
	if s := mine.s; s != nil {
		if c.queue.attached {
			wake = mine.enqueue(&c.queue, d.status[:], d.Outcome) || wake
		}
		s.mu.Unlock()
	}
	if wake {
		c.queue.wake()
	}
	return w
}

// decide decides on n requests under the limits of the own key and of the shared keys. room reports
// whether the shared keys have room, wake whether the syncer must be woken for them.
func (o *side) decide(q *request, ms, n int64, d *Decision) (room, wake bool) {
	all := sides{*o}
	for i, ls := range q.lists {
		other := &all[1+i]
		if other.ls = noLimits; ls == nil {
			continue
		}
		p := &q.shared[i]
		known := p.shard.kind == ofSources && o.first != 0 && o.atLimit(ms) // a denied request adds no source
		p.shard.mu.Lock()
		other.s, other.ls = p.shard, ls
		if known {
			other.first = p.shard.findUnder(p.hash, ls)
			continue
		}
		if other.first = p.shard.enter(&q.c.queue, p.key, p.hash, ls, ms); other.first == 0 {
			all.unlock(1)
			d.denyNoRoom(q)
			return false, false
		}
	}
	room = all.decide(ms, n, d)
	if queue := &q.c.queue; queue.attached {
		at := len(all[0].ls.rules)
		for i := 1; i < len(all); i++ {
			o := &all[i]
			if o.first != 0 {
				wake = o.enqueue(queue, d.status[at:], d.Outcome) || wake
			}
			at += len(o.ls.rules)
		}
	}
	all.unlock(1)
	return room, wake
}

// decide decides on n requests, and counts them if they pass. It reports whether the shared keys
// have room.
func (all *sides) decide(ms, n int64, d *Decision) (room bool) {
	d.limits, d.skip = all[0].ls, all[0].skip
	d.source, d.total = all[1].list(), all[2].list()
	if d.count() <= 3 { // nearly every request; a smaller array is cheaper to clear
		var few [3]frames
		return all.decideOn(few[:d.count()], ms, n, d)
	}
	var most [maxDecided]frames
	return all.decideOn(most[:d.count()], ms, n, d)
}

// decideOn is decide with memory for the frames of all limits.
func (all *sides) decideOn(fs []frames, ms, n int64, d *Decision) (room bool) {
	admit, at := true, 0
	room = true
	for i := range all {
		o := &all[i]
		m := at + len(o.ls.rules)
		ok := o.view(fs[at:m], ms, n, d)
		at, admit = m, admit && ok
		room = room && (ok || i == 0)
	}
	d.settle(fs, ms, n, admit)
	return room
}

// takeStrict is decide for a list with a strict limit. If the request lacks only permits,
// takeStrict returns a waiter for it, or records the demand so that the next request finds permits.
// If an admitted request was delayed into a later frame, takeStrict returns a waiter that is
// already decided.
func (o *side) takeStrict(q *request, came, n int64, d *Decision, wait bool) (w *waiter, wake bool) {
	ms := came
	if wait {
		ms = q.c.queue.present(came)
	}
	longest, wake := o.decideStrict(q, ms, n, d)
	if d.Outcome == Denied && longest == 0 {
		return nil, wake
	}
	o.arrive(ms, n)
	switch {
	case d.Outcome == Allowed && o.ls.sameFrames(came, ms):
		return nil, wake
	case d.Outcome == Denied && (!wait || o.s.waitingFor(o.first) >= maxWaiters):
		o.addUnmet(n)
		d.lackPermits()
		return nil, wake
	}
	w = &waiter{n: n, since: ms, longest: longest, first: o.first, request: new(*q), d: *d, done: make(chan struct{})}
	if d.Outcome == Allowed {
		w.decided(ms)
	} else {
		o.s.lineUp(w, o.ls)
	}
	return w, wake
}

// decideStrict is decide for a list with a strict limit. If the request lacks only permits, longest
// is how long it may wait behind the requests already waiting. Otherwise longest is 0. Requests
// never wait for room under shared limits.
func (o *side) decideStrict(q *request, ms, n int64, d *Decision) (longest time.Duration, wake bool) {
	room, wake := o.decide(q, ms, n, d)
	if !room || d.Outcome == Allowed {
		return 0, wake
	}
	longest = o.lacking(ms, n, true)
	if longest == 0 && d.RetryAfter == 0 { // requests ahead will use the available room
		d.RetryAfter = leaseRetry
	}
	return longest, wake
}

// denies reports whether one more request would be denied for a reason other than missing permits
// that an exchange can bring. The own key must be locked; denied means that it denies already. If
// denies returns true, d is the decision.
func (o *side) denies(q *request, ms int64, denied bool, d *Decision) bool {
	all := sides{*o}
	for i, ls := range q.lists {
		other := &all[1+i]
		if other.ls = noLimits; ls == nil {
			continue
		}
		p := &q.shared[i]
		p.shard.mu.Lock()
		other.s, other.ls, other.first = p.shard, ls, p.shard.findUnder(p.hash, ls)
		denied = denied || other.first != 0 && other.atLimit(ms)
	}
	if denied {
		all.decide(ms, 1, d)
	}
	all.unlock(1)
	return denied
}

// refund gives back n requests that were counted at the time at, either for all keys or for none.
func (q *request) refund(ms, at, n int64) (done bool) {
	var all sides
	found := true
	for i := range all {
		p, ls := &q.own, q.ls
		if i > 0 {
			p, ls = &q.shared[i-1], q.lists[i-1]
		}
		if ls == nil {
			continue
		}
		p.shard.mu.Lock()
		all[i] = side{p.shard, p.shard.findUnder(p.hash, ls), ls, ls.skip(q.grant)}
		found = found && all[i].first != 0
	}
	for i := range all {
		if o := &all[i]; found && o.s != nil {
			done = o.refund(&q.c.queue, ms, at, n) || done
		}
	}
	all.unlock(0)
	return done
}

// refundShared gives back n requests of the shared keys that were counted at the time at.
func (q *request) refundShared(at, n int64) {
	for i, ls := range q.lists {
		if ls == nil {
			continue
		}
		p := &q.shared[i]
		p.shard.mu.Lock()
		if first := p.shard.findUnder(p.hash, ls); first != 0 {
			(&side{p.shard, first, ls, 0}).refund(&q.c.queue, at, at, n)
		}
		p.shard.mu.Unlock()
	}
}

// denyNoRoom denies a request because one of its keys has no counter, not even an overflow counter.
// A key that cannot be counted must not pass without a limit.
func (d *Decision) denyNoRoom(q *request) {
	d.limits, d.source, d.total = noLimits, q.lists[0], q.lists[1]
	if q.ls != nil {
		d.limits, d.skip = q.ls, q.ls.skip(q.grant)
	}
	d.Outcome, d.Binding = Denied, d.firstApplied()
	d.RetryAfter = d.rule(d.Binding).Window
	for i := range d.count() {
		d.status[i].reset = clamp(ceilSeconds(d.rule(i).window))
	}
}
