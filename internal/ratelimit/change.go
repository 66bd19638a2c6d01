package ratelimit

// change puts a key under other limits and returns its new first counter. A limit that keeps its
// name keeps its counts. Pending exchanges are planned again, even if the request that found the
// key is denied.
func (s *shard) change(q *queue, first uint32, h hash, ls *Limits, ms int64) uint32 {
	was := limitsOf(s.hotOf(first).limits)
	if was.sameDocuments(ls) {
		s.adopt(q, first, was, ls, ms)
		return first
	}
	next := s.chain(s.coldOf(first).name, h.parts(), ls, ms)
	s.hotOf(next).seen = s.hotOf(first).seen
	old, n := s.chainOf(first)
	to, m := s.chainOf(next)
	for i := range m {
		for j := range n {
			if ls.rules[i].Name == was.rules[j].Name {
				s.inherit(to[i], &ls.rules[i], old[j], &was.rules[j], ms)
				if s.hotOf(old[j]).state != quiet {
					s.replan(q, to[i])
				}
			}
		}
	}
	s.unlink(first)
	s.unchain(first)
	s.link(next)
	return next
}

// sameDocuments reports whether both lists have the same names in the same order. They then have
// the same documents.
func (ls *Limits) sameDocuments(other *Limits) bool {
	if len(ls.rules) != len(other.rules) {
		return false
	}
	for i := range ls.rules {
		if ls.rules[i].Name != other.rules[i].Name {
			return false
		}
	}
	return true
}

// adopt puts the counters of a key under other limits with the same names.
func (s *shard) adopt(q *queue, first uint32, was, ls *Limits, ms int64) {
	ls.chains.Add(1)
	defer was.chains.Add(-1)
	nums, n := s.chainOf(first)
	for i := range n {
		num := nums[i]
		s.reframe(num, &was.rules[i], &ls.rules[i], ms)
		if ls.rules[i].Requests < was.rules[i].Requests {
			s.recall(num, &ls.rules[i])
		}
		h := s.hotOf(num)
		h.limits = ls.number
		if h.state != quiet && h.state < busy {
			s.replan(q, num)
		}
	}
	s.serve(first, ms)
}

// inherit moves the counts of the old counter of a limit to the new one after the list of limits
// has changed.
func (s *shard) inherit(num uint32, r *rule, old uint32, was *rule, ms int64) {
	s.advance(old, was, ms)
	if was.Strict {
		s.forgoLease(old, was)
	}
	moved, reframed := was.doc != r.doc, !was.sameFrames(r)
	from := s.slots(s.hotOf(old), was)
	mine := s.mine(old, was)
	s.hotOf(num).start = s.hotOf(old).start
	if reframed {
		s.hotOf(num).start = r.newest(ms)
	}
	for j := range from {
		slot, own, at := from[j], mine[j], endOf(s.hotOf(old).start-int64(j)*was.frame, was.frame, ms)
		if moved {
			// The limit now has another document. It will not contain the counts of the old
			// document, nor those of the pending write.
			s.carry(num, at, int64(slot.known)+int64(slot.pending))
			slot.known, slot.pending, own = 0, 0, 0
		} else if reframed {
			own = 0 // see reframe
		}
		s.put(num, r, at, slot, own)
	}
	if moved {
		s.addCarried(num, r)
		return
	}
	if list := s.carried[old]; list != nil {
		s.carried[num] = list
	}
	h, c := s.hotOf(num), s.coldOf(num)
	h.flags, h.holders = s.hotOf(old).flags, s.hotOf(old).holders
	h.flags.set(stale, reframed || h.flags.has(stale))
	c.etag, c.version, c.began, c.synced, c.recent = s.coldOf(old).etag, s.coldOf(old).version, s.coldOf(old).began, s.coldOf(old).synced, s.coldOf(old).recent
	h.extra, s.hotOf(old).extra = s.hotOf(old).extra, 0
	if s.pendingSeq(num) != 0 {
		s.extrasOf(num).reframed = reframed || s.extrasOf(num).reframed
	}
	h.flags.set(readFirst, s.pendingSeq(num) != 0) // Finish will not find the counter of the current exchange
}

// endOf returns the time at which the requests of a frame are assumed to have arrived when the
// length of frames changes: the end of the frame, or now if that is earlier. So a change never
// frees a key early.
func endOf(start, length, ms int64) int64 {
	if start > ms {
		return start
	}
	return min(start+length-1, ms)
}

// reframe moves the counts of a counter to the frames of another rule.
func (s *shard) reframe(num uint32, was, r *rule, ms int64) {
	if was.sameFrames(r) {
		return
	}
	s.advance(num, was, ms)
	if was.Strict {
		s.forgoLease(num, was)
	}
	h := s.hotOf(num)
	var slots [maxSlots]slot
	n := copy(slots[:], s.slots(h, was))
	start := h.start
	if was.isFar() {
		s.farOf(was.frames()).release(h.near[0].known)
	}
	h.near, s.coldOf(num).mine = [2]slot{}, [2]uint32{}
	delete(s.repairs, num) // which frames are too old depends on the window
	if h.extra != 0 {
		s.extras[h.extra].frames, s.extras[h.extra].writers = observation{}, observation{}
	}
	if r.isFar() {
		h.near[0].known = s.farOf(r.frames()).alloc()
	}
	h.start = r.newest(ms)
	for j := range n {
		// mine starts at 0: the process that converts the document may put this process's counts
		// into another frame.
		s.put(num, r, endOf(start-int64(j)*was.frame, was.frame, ms), slots[j], 0)
	}
	h.flags |= stale // the document is still in frames of the old length
	if s.pendingSeq(num) != 0 {
		s.extrasOf(num).reframed = true
	}
}

// put adds the counts of a slot to the frame that contains the time at, and own to mine. It drops
// counts that are too old to matter.
func (s *shard) put(num uint32, r *rule, at int64, from slot, own uint32) {
	h := s.hotOf(num)
	j, there := r.index(h.start, at)
	if !there {
		if lost := int64(from.pending) + int64(from.unclaimed); lost > 0 {
			s.all.expired.Add(lost)
		}
		return
	}
	to := &s.slots(h, r)[j]
	to.known = clamp(int64(to.known) + int64(from.known))
	to.pending = int32(min(max(int64(to.pending)+int64(from.pending), -MaxCount), MaxCount))
	to.count(int64(from.unclaimed))
	mine := &s.mine(num, r)[j]
	*mine = clamp(int64(*mine) + int64(own))
}

// index returns the index of the frame that contains a time, and whether the counter has that
// frame. Frame 0 starts at newest. A later time belongs to frame 0.
func (r *rule) index(newest, at int64) (int, bool) {
	j := max((newest-r.align(at))/r.frame, 0)
	return int(j), j < int64(r.frames())
}
