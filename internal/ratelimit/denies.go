package ratelimit

import "time"

// Denies reports whether the key is at its limit, so that Take would deny it
// one more request; the decision is then that of Take. Otherwise nothing is
// decided. It counts nothing and makes no counter, so it may be asked for a
// key whose owner is not yet proven, to spare work that would be in vain.
func (c *Counters) Denies(now time.Time, k Key, e *Effective) (d Decision, denies bool) {
	if e.Mode != Enforce || e.Trusted {
		return d, false
	}
	k = k.bounded()
	ms, ls := millis(now), e.For(k)
	s, h := c.lookup(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.find(h)
	if first == 0 || s.hotOf(first).limits != ls.number || !s.atLimit(first, ms) {
		return d, false
	}
	s.decide(first, ls, ms, 1, &d)
	d.hide = e.HideHeaders
	return d, true
}

// atLimit reports whether a key would be denied one more request.
func (s *shard) atLimit(first uint32, ms int64) bool {
	rules := limitsOf(s.hotOf(first).limits).rules
	num := first
	for i := range rules {
		r := &rules[i]
		var f frames
		var d Decision
		if s.view(&f, num, r, ms, &d); !f.admits(r, 1) {
			return true
		}
		num = s.hotOf(num).next
	}
	return false
}

// Refund takes n requests back that were admitted at that time, so that they
// count no longer, here or in the store. It reports false, and changes nothing,
// where their frame has left the window or the key is not in memory. A request
// may be taken back once; the caller makes sure of that.
func (c *Counters) Refund(now, admitted time.Time, k Key, e *Effective, n int64) bool {
	k = k.bounded()
	ms, ls := millis(now), e.For(k)
	s, h := c.lookup(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.find(h)
	if first == 0 || s.hotOf(first).limits != ls.number || n < 1 {
		return false
	}
	done := false
	num := first
	for i := range ls.rules {
		r := &ls.rules[i]
		s.advance(num, r, ms)
		f := s.frames(num, r)
		if j, there := r.index(f.start, millis(admitted)); there && f.slots[j].total(1) >= n {
			f.slots[j].count(-n)
			done = true
		}
		num = s.hotOf(num).next
	}
	if done && c.queue.attached && s.requeue(&c.queue, first, ls) {
		c.queue.wake()
	}
	return done
}
