package ratelimit

// takePlainTotal is a fast path of takeAll for a client with a total and no other special case, if
// shard.decidePlain can decide for both keys. Otherwise it returns false and changes nothing. The
// lock of the total is held only as long as the lock of a single key, because all requests of the
// client need it.
func (c *Counters) takePlainTotal(ms int64, k Key, ls, total *Limits, d *Decision) bool {
	h, th := c.all.hashKey.both(k)
	s, t := &c.shards[h.hi>>c.shift], c.totalShard(th)
	s.mu.Lock()
	first := s.findUnder(h, ls)
	if first == 0 || !s.decidePlain(first, ls, ms, &d.status[0], &d.Soft) {
		s.mu.Unlock()
		return false
	}
	t.mu.Lock()
	whole := t.findUnder(th, total)
	if whole == 0 || !t.decidePlain(whole, total, ms, &d.status[1], &d.Soft) {
		t.mu.Unlock()
		s.hotOf(first).near[0].count(-1) // not visible to other goroutines yet
		s.mu.Unlock()
		d.status[0], d.Soft = status{}, false
		return false
	}
	wake := c.queue.attached && t.enqueuePlain(&c.queue, whole, &d.status[1])
	t.mu.Unlock()
	wake = c.queue.attached && s.enqueuePlain(&c.queue, first, &d.status[0]) || wake
	s.mu.Unlock()
	if wake {
		c.queue.wake()
	}
	d.limits, d.source, d.total, d.Outcome = ls, nil, total, Allowed
	if d.tighter(1) {
		d.Binding = 1
	}
	return true
}

// onlyPlainTotal reports whether takePlainTotal can be tried for the bounded key under its list.
func (e *Effective) onlyPlainTotal(k Key, clientID string, ls *Limits) bool {
	return e.Total != nil && e.Total.plain && ls != nil && ls.plain && e.source == "" &&
		len(clientID) <= maxKeySize-len(TotalUser) && k.ClientID == clientID
}
