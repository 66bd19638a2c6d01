package ratelimit

import "time"

// Denies reports whether [Counters.Take] would deny one more request of the key, and if so returns
// the decision of Take. It counts nothing and adds no key, so it may be called before credentials
// are checked, to avoid work for a request that would be denied. A key that is not in memory is
// denied if the overflow counter that it shares is at its limit, or if there is no room for one more
// of those. It reports false for a key that is known only under other limits, and for every mode but
// [Enforce].
func (c *Counters) Denies(now time.Time, k Key, e *Effective) (d Decision, denies bool) {
	if e.Mode != Enforce || e.Trusted {
		return d, false
	}
	ms := millis(now)
	if e.Total != nil {
		return c.deniesBoth(ms, k, e)
	}
	k = k.bounded()
	ls, overridden := e.of(k)
	s, h := c.lookup(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.findShared(h, ls)
	switch {
	case first != 0 && s.deniesOne(first, ls, ms):
		s.decide(first, ls, ms, 1, &d)
	case first == 0 && s.noRoom(ls, ms):
		denyNoRoom(ls, nil, &d)
	default:
		return d, false
	}
	d.hide, d.Overridden = e.HideHeaders, overridden
	return d, true
}

// deniesBoth is Denies for a client with a total.
func (c *Counters) deniesBoth(ms int64, k Key, e *Effective) (d Decision, denies bool) {
	own := k.bounded()
	s, h, of := c.lookupBoth(own, k.ClientID, e.Total)
	ls, overridden := e.of(own)
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := side{s, s.findShared(h, ls), ls}
	if mine.first == 0 && s.noRoom(ls, ms) {
		denyNoRoom(ls, of.ls, &d)
	} else {
		denies = mine.first != 0 && s.deniesOne(mine.first, ls, ms)
		if mine.first != 0 && s.hotOf(mine.first).limits != ls.number {
			mine.first = 0 // known only under other limits
		}
		if !mine.deniesWith(&of, ms, denies, &d) {
			return d, false
		}
	}
	d.hide, d.Overridden = e.HideHeaders, overridden
	return d, true
}

// findShared is find, or else returns the overflow counter of the key: counters of its own would inherit
// what that has.
func (s *shard) findShared(h hash, ls *Limits) uint32 {
	if first := s.find(h); first != 0 {
		return first
	}
	return s.findOverflow(ls, h.place())
}

// findUnder is find for a key under certain limits; 0 if it has others.
func (s *shard) findUnder(h hash, ls *Limits) uint32 {
	if first := s.find(h); first != 0 && s.hotOf(first).limits == ls.number {
		return first
	}
	return 0
}

// deniesOne reports whether one more request of a key would be denied, for more than a want of permits
// that an exchange can bring. It reports false for a key that is under other limits.
func (s *shard) deniesOne(first uint32, ls *Limits, ms int64) bool {
	return s.hotOf(first).limits == ls.number && s.atLimit(first, ms) && (!ls.strict || s.lacking(first, ls, ms, 1, 0) == 0)
}

// atLimit reports whether one more request of a key would be denied.
func (s *shard) atLimit(first uint32, ms int64) bool {
	rules := limitsOf(s.hotOf(first).limits).rules
	num := first
	for i := range rules {
		r := &rules[i]
		var f frames
		var d Decision
		if s.view(&f, num, r, ms, &d); f.full(r, 1) {
			return true
		}
		num = s.hotOf(num).next
	}
	return false
}

// Refund gives back n requests that were admitted at the time admitted, so that they no longer
// count, here or in the store. It reports false, and changes nothing, if their frame has left the
// window, if the key is not in memory, or if its limits have changed. The caller must not give back
// a request twice.
func (c *Counters) Refund(now, admitted time.Time, k Key, e *Effective, n int64) bool {
	ms, at := millis(now), millis(admitted)
	if e.Total != nil {
		return c.refundBoth(ms, at, k, e, n)
	}
	k = k.bounded()
	ls := e.For(k)
	s, h := c.lookup(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.findUnder(h, ls)
	if first == 0 || n < 1 {
		return false
	}
	return s.refund(&c.queue, first, ls, ms, at, n)
}

// refundBoth is Refund for a client with a total: it gives back to both, or to neither.
func (c *Counters) refundBoth(ms, at int64, k Key, e *Effective, n int64) bool {
	own := k.bounded()
	s, h, of := c.lookupBoth(own, k.ClientID, e.Total)
	ls := e.For(own)
	s.mu.Lock()
	defer s.mu.Unlock()
	of.shard.mu.Lock()
	defer of.shard.mu.Unlock()
	first, whole := s.findUnder(h, ls), of.shard.findUnder(of.hash, of.ls)
	if first == 0 || whole == 0 || n < 1 {
		return false
	}
	done := s.refund(&c.queue, first, ls, ms, at, n)
	return of.shard.refund(&c.queue, whole, of.ls, ms, at, n) || done
}

// refund gives back n requests of a key that were counted at the time at, and hands its counters over to
// the syncer. It reports whether their frames were still there.
func (s *shard) refund(q *queue, first uint32, ls *Limits, ms, at, n int64) bool {
	nums, counters := s.chainOf(first)
	for i := range counters {
		s.advance(nums[i], &ls.rules[i], ms)
	}
	done := s.giveBack(first, ls, at, n)
	if done && q.attached && s.requeue(q, first, ls) {
		q.wake()
	}
	return done
}
