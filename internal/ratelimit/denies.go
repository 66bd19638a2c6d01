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
	k = k.bounded()
	ms := millis(now)
	ls, overridden := e.of(k)
	s, h := c.lookup(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.find(h)
	if first == 0 { // counters of its own would inherit what the overflow counter has
		first = s.findOverflow(ls, h.place())
	}
	switch {
	case first != 0 && s.hotOf(first).limits == ls.number && s.atLimit(first, ms) && (!ls.strict || s.lacking(first, ls, ms, 1, 0) == 0):
		s.decide(first, ls, ms, 1, &d)
	case first == 0 && s.noRoom(ls, ms):
		denyNoRoom(ls, &d)
	default:
		return d, false
	}
	d.hide, d.Overridden = e.HideHeaders, overridden
	return d, true
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
	k = k.bounded()
	s, h := c.lookup(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.refund(s, h, e.For(k), millis(now), millis(admitted), n)
}

// refund is Refund under the lock of the shard.
func (c *Counters) refund(s *shard, h hash, ls *Limits, ms, at, n int64) bool {
	first := s.find(h)
	if first == 0 || s.hotOf(first).limits != ls.number || n < 1 {
		return false
	}
	nums, counters := s.chainOf(first)
	for i := range counters {
		s.advance(nums[i], &ls.rules[i], ms)
	}
	done := s.giveBack(first, ls, at, n)
	if done && c.queue.attached && s.requeue(&c.queue, first, ls) {
		c.queue.wake()
	}
	return done
}
