package ratelimit

// change puts the entry under other limits and returns the entry that counts
// from now on. A limit that keeps its name keeps its counts.
func (s *shard) change(hash uint64, e *entry, ls *Limits, ms int64) *entry {
	if e.limits.aligned(ls) {
		for i := range ls.rules {
			e.at(i).reframe(&e.limits.rules[i], &ls.rules[i], ms)
		}
		e.limits = ls
		return e
	}
	next := newEntry(s, e.name(), ls, ms)
	for i := range ls.rules {
		for j := range e.limits.rules {
			if ls.rules[i].Name == e.limits.rules[j].Name {
				next.at(i).inherit(e.at(j), &e.limits.rules[j], &ls.rules[i], ms)
			}
		}
	}
	s.remove(hash, e)
	s.insert(hash, next)
	return next
}

// inherit takes over what another counter of the same limit counted, when the
// limit has moved within its policy.
func (c *Counter) inherit(old *Counter, was, r *rule, ms int64) {
	e := c.entry
	*c = *old
	c.entry = e
	c.sync.state = idle // whoever held the old counter lets go of it
	c.reframe(was, r, ms)
	if was.doc == r.doc {
		return
	}
	// Another document: what was on its way to the old one will not be
	// counted in the new one, so it counts here as known.
	for i := range c.slots() {
		c.slots()[i].settle()
	}
	c.sync = syncInfo{}
	c.setPending(nil)
	c.extra().until = ms + r.window + r.frame
}

// reframe puts the counts into the frames of another rule. Of each old frame
// nobody knows when in it the requests came; they are taken to have come at
// its end, so that a change never frees anybody early.
func (c *Counter) reframe(was, r *rule, ms int64) {
	if was.frame == r.frame && was.Frames == r.Frames {
		return
	}
	c.observe(was, ms)
	old, oldStart := c.slots(), c.start
	if c.far == nil {
		near := c.near
		old = near[:]
	}
	c.near, c.far = [2]slot{}, nil
	c.init(c.entry, r, c.at)
	for j, from := range old {
		last := min(oldStart-int64(j)*was.frame+was.frame-1, c.at)
		if i, ok := c.index(r, last); ok {
			c.slots()[i].add(from)
		} else {
			c.entry.shard.all.expired.Add(int64(from.i))
		}
	}
	// The document may hold frames of the old length for as long as they live.
	c.extra().until = c.at + was.window + was.frame
}
