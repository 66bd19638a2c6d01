package ratelimit

// carry is a count that a counter has in addition to its document. It comes from the previous
// document of its limit, before the limit moved in the list, or from an overflow counter. It is
// added to the counts of each document that is read, until it is too old to matter.
type carry struct {
	at int64 // assumed time of the requests, milliseconds
	n  int64 // requests
}

// carry adds n requests to the carried counts of a counter.
func (s *shard) carry(num uint32, at, n int64) {
	if n <= 0 {
		return
	}
	if s.carried == nil {
		s.carried = map[uint32][]carry{}
	}
	s.carried[num] = append(s.carried[num], carry{at: at, n: n})
	s.hotOf(num).flags |= carried
}

// carriedIn returns the carried counts of a counter by frame, the newest first. It drops counts
// that are too old to matter.
func (s *shard) carriedIn(num uint32, r *rule) (in [maxSlots]int64) {
	h := s.hotOf(num)
	if !h.flags.has(carried) {
		return in
	}
	list := s.carried[num]
	kept := list[:0]
	for _, c := range list {
		if j, there := r.index(h.start, c.at); there {
			in[j] += c.n
			kept = append(kept, c)
		}
	}
	if len(kept) == 0 {
		delete(s.carried, num)
		h.flags &^= carried
		return in
	}
	s.carried[num] = kept
	return in
}

// addCarried adds the carried counts of a counter to its known counts, which must not include them
// yet.
func (s *shard) addCarried(num uint32, r *rule) {
	in := s.carriedIn(num, r)
	slots := s.slots(s.hotOf(num), r)
	for j := range slots {
		slots[j].known = clamp(int64(slots[j].known) + in[j])
	}
}

// inheritOverflow makes the new counters of a key carry all counts of its overflow counter, because
// any of them may belong to this key.
func (s *shard) inheritOverflow(first, shared uint32, ls *Limits, ms int64) {
	from, _ := s.chainOf(shared)
	to, n := s.chainOf(first)
	for i := range n {
		r := &ls.rules[i]
		s.advance(from[i], r, ms)
		start := s.hotOf(from[i]).start
		for j, slot := range s.slots(s.hotOf(from[i]), r) {
			s.carry(to[i], endOf(start-int64(j)*r.frame, r.frame, ms), slot.total(1))
		}
		s.addCarried(to[i], r)
	}
}
