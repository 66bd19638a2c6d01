package ratelimit

// An overflow counter counts for all keys of a shard that find no room, are
// under the same limits and fall to the same place.
const (
	overflowPlaces = 8  // for each list of limits
	maxOverflow    = 32 // overflow counters of a shard
)

// overflow is an overflow counter, and what falls to it.
type overflow struct {
	limits uint32
	place  uint32
	num    uint32
}

// admit finds a place for a key that is not in the index: counters of its own
// if there is room or room can be made, otherwise an overflow counter. 0 if
// there is none of those left for its limits.
func (s *shard) addKey(k Key, h hash, ls *Limits, ms int64) uint32 {
	place := uint32(h.lo % overflowPlaces)
	if !s.crowded(ls) && (s.all.reserve() || s.evict(ms)) {
		first := s.insert(k, h, ls, ms)
		for _, o := range s.shared {
			if o.limits == ls.number && o.place == place { // counters of its own must not free it
				s.inheritOverflow(first, o.num, ls, ms)
			}
		}
		return first
	}
	s.all.overflowed.Add(1)
	return s.overflow(ls, place, ms)
}

// overflow returns the overflow counter of a place, and makes it if need be. 0
// if there are too many, under other limits.
func (s *shard) overflow(ls *Limits, place uint32, ms int64) uint32 {
	free := -1
	for i, o := range s.shared {
		if o.limits == ls.number && o.place == place {
			return o.num
		}
		if s.idle(o.num, ms) {
			free = i
		}
	}
	switch {
	case free >= 0:
		s.unchain(s.shared[free].num)
	case len(s.shared) < maxOverflow:
		free = len(s.shared)
		s.shared = append(s.shared, overflow{})
	default:
		return 0
	}
	num := s.chain(0, [3]uint32{}, ls, ms)
	for n := num; n != 0; n = s.hotOf(n).next {
		s.hotOf(n).flags = pooled
	}
	s.shared[free] = overflow{limits: ls.number, place: place, num: num}
	return num
}

// overfull is the answer where there is not even an overflow counter: denied,
// because a key that cannot be counted must not be without a limit.
func denyNoRoom(ls *Limits, d *Decision) {
	d.Outcome, d.limits, d.RetryAfter = Denied, ls, ls.rules[0].Window
	for i := range ls.rules {
		d.status[i].reset = clamp(ceilSeconds(ls.rules[i].window))
	}
}
