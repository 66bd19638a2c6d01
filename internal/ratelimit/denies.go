package ratelimit

import (
	"math"
	"time"
)

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
	ms, own := millis(now), k.bounded()
	ls, overridden := e.of(own)
	q := c.requestOf(own, k.ClientID, ls, e)
	mine := side{ls: noLimits}
	if s := q.own.shard; s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		mine = side{s, s.findShared(q.own.hash, ls), ls, ls.skip(q.grant)}
		if mine.first == 0 && s.noRoom(ls, ms) {
			d.denyNoRoom(&q)
			denies = true
		}
	}
	if !denies {
		denied := mine.denied(ms)
		if mine.first != 0 && mine.s.hotOf(mine.first).limits != ls.number {
			mine.first = 0 // known only under other limits
		}
		if !mine.denies(&q, ms, denied, &d) {
			return d, false
		}
	}
	d.hide, d.Overridden = e.HideHeaders, overridden
	return d, true
}

// findShared is find with a fallback to the overflow counter of the key. New counters of the key
// would inherit the counts of that one.
func (s *shard) findShared(h hash, ls *Limits) uint32 {
	if first := s.find(h); first != 0 {
		return first
	}
	return s.findOverflow(ls, h.place())
}

// findUnder is find for a key under certain limits. It returns 0 if the key has other limits.
func (s *shard) findUnder(h hash, ls *Limits) uint32 {
	if first := s.find(h); first != 0 && s.hotOf(first).limits == ls.number {
		return first
	}
	return 0
}

// denied reports whether one more request of a key would be denied for a reason other than missing
// permits that an exchange can bring. It returns false for a key that is not in memory or is under
// other limits.
func (o *side) denied(ms int64) bool {
	return o.first != 0 && o.s.hotOf(o.first).limits == o.ls.number && o.atLimit(ms) && (!o.ls.strict || o.lacking(ms, 1, false) == 0)
}

// atLimit reports whether one more request of a key would be denied.
func (o *side) atLimit(ms int64) bool {
	for num, r := range o.applied() {
		var f frames
		var d Decision
		if o.s.view(&f, num, r, ms, &d); f.full(r, 1) {
			return true
		}
	}
	return false
}

// Refund gives back n requests that were admitted at the time admitted. They no longer count,
// neither here nor in the store. Refund returns false and changes nothing if their frame has left
// the window, if the key is not in memory, or if its limits have changed. Callers must not refund a
// request twice.
func (c *Counters) Refund(now, admitted time.Time, k Key, e *Effective, n int64) bool {
	if n < 1 {
		return false
	}
	own := k.bounded()
	q := c.requestOf(own, k.ClientID, e.For(own), e)
	return q.refund(millis(now), millis(admitted), n)
}

// refund gives back n requests of a key that were counted at the time at, and queues its counters
// for the syncer. It reports whether their frames still existed.
func (o *side) refund(q *queue, ms, at, n int64) bool {
	for num, r := range o.applied() {
		o.s.advance(num, r, ms)
	}
	done := o.giveBack(at, n)
	if done && q.attached && o.requeue(q) {
		q.wake()
	}
	return done
}

// Room returns how many more requests of the key would pass: under its own limits, under the limits
// of its source, and under the total. Each is [math.MaxInt64] if no such limit counts them. Permits
// of a strict limit that an exchange can bring count as room. Room counts nothing, but it adds the
// key to memory like [Counters.Take].
func (c *Counters) Room(now time.Time, k Key, e *Effective) (own, source, total int64) {
	ms, bounded := millis(now), k.bounded()
	ls, _ := e.of(bounded)
	q := c.requestOf(bounded, k.ClientID, ls, e)
	return q.own.room(&c.queue, ms, q.ls, q.grant), q.shared[0].room(&c.queue, ms, q.lists[0], 0), q.shared[1].room(&c.queue, ms, q.lists[1], 0)
}

// room returns how many more requests of the grant the limits of a key admit. ls may be nil.
func (p *place) room(queue *queue, ms int64, ls *Limits, grant Grants) int64 {
	least := int64(math.MaxInt64)
	if ls == nil {
		return least
	}
	s := p.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	o := side{s, s.enter(queue, p.key, p.hash, ls, ms), ls, ls.skip(grant)}
	if o.first == 0 {
		return 0
	}
	for num, r := range o.applied() {
		var f frames
		var d Decision
		s.view(&f, num, r, ms, &d)
		room := max(r.Requests-f.used, 0)
		switch {
		case f.instances == 0:
			room = 0
		case f.instances > 1 && f.lease == nil:
			room = (room + f.instances - 1) / f.instances
		}
		least = min(least, room)
	}
	return least
}
