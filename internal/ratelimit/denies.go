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
	ms, hash := c.millis(now), k.hash(c.seed)
	s := c.shardOf(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.find(hash, k)
	if found == nil || found.limits != e.For(k) || !found.atLimit(ms) {
		return d, false
	}
	found.take(ms, 1, &d)
	d.hide = e.HideHeaders
	return d, true
}
