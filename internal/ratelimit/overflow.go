package ratelimit

// sharedPerShard is how many overflow counters a shard has.
const sharedPerShard = 8

// admit finds a place for a key that is not in the table: a new entry if there
// is room or room can be made, otherwise an overflow counter. Nil if there is
// none of those left for its limits.
func (s *shard) admit(hash uint64, k Key, ls *Limits, ms int64) *entry {
	if sh := s.sharedBy(hash, ls); sh != nil && sh.atLimit(ms) {
		s.all.overflowed.Add(1)
		return sh // it may be this key that used it up: an entry of its own would free it
	}
	if s.all.reserve() || s.evict(ms) {
		e := newEntry(s, k, ls, ms)
		s.insert(hash, e)
		return e
	}
	s.all.overflowed.Add(1)
	return s.share(hash, ls, ms)
}

// sharedBy returns the overflow counter that the key falls to, if it is in use.
func (s *shard) sharedBy(hash uint64, ls *Limits) *entry {
	for i := range s.overflow {
		if e := s.overflow[(int(hash%sharedPerShard)+i)%sharedPerShard]; e != nil && e.limits.same(ls) {
			return e
		}
	}
	return nil
}

// share returns the overflow counter that the key falls to, and starts it if
// need be. Counters are never shared under different limits.
func (s *shard) share(hash uint64, ls *Limits, ms int64) *entry {
	if s.overflow == nil {
		s.overflow = make([]*entry, sharedPerShard)
	}
	for i := range s.overflow {
		slot := &s.overflow[(int(hash%sharedPerShard)+i)%sharedPerShard]
		if *slot == nil || (*slot).idle(ms) {
			*slot = newEntry(s, Key{}, ls, ms)
			(*slot).shared = true
		}
		if (*slot).limits.same(ls) {
			return *slot
		}
	}
	return nil
}

// overfull is the answer where there is not even an overflow counter: denied,
// because a key that cannot be counted must not be without a limit.
func overfull(ls *Limits, d *Decision) {
	d.Outcome, d.limits, d.RetryAfter = Denied, ls, ls.rules[0].Window
	for i := range ls.rules {
		d.status[i].reset = clamp(ceilSeconds(ls.rules[i].window))
	}
}
