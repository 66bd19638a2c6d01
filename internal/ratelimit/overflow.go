package ratelimit

import "slices"

// Bounds of overflow counters.
const (
	overflowPlaces = 8  // in a shard, for each list of limits
	maxOverflow    = 32 // in a shard, for all lists of limits
)

// overflow is a counter that several keys share. They are keys of one shard that found no room,
// have the same limits and hash to the same place.
type overflow struct {
	limits uint32 // number of the list of limits
	place  uint32
	num    uint32 // number of its first counter
}

// addKey returns the first counter for a key that is not in the index. It is a new counter if there
// is room or a key can be evicted, and otherwise an overflow counter. A total always gets a new
// counter: there are no more totals than clients, and overflow counters are not shared with other
// processes. addKey returns 0 if the shard has too many overflow counters under other limits.
func (s *shard) addKey(k Key, h hash, ls *Limits, ms int64) uint32 {
	place := h.place()
	if !s.crowded(ls) && (s.reserve() || s.evict(ms)) {
		first := s.insert(k, h, ls, ms)
		if shared := s.findOverflow(ls, place); shared != 0 { // counters of its own must not free it
			s.inheritOverflow(first, shared, ls, ms)
		}
		return first
	}
	s.all.overflowed.Add(1)
	return s.overflow(ls, place, ms)
}

// overflow returns the overflow counter of a place, and creates it if necessary. It returns 0 if
// the shard has too many under other limits.
func (s *shard) overflow(ls *Limits, place uint32, ms int64) uint32 {
	if num := s.findOverflow(ls, place); num != 0 {
		return num
	}
	free := s.idleOverflow(ms)
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

// place returns the place of a key among the overflow counters of its shard.
func (h hash) place() uint32 { return uint32(h.lo % overflowPlaces) }

// findOverflow returns the overflow counter of a place, or 0.
func (s *shard) findOverflow(ls *Limits, place uint32) uint32 {
	for _, o := range s.shared {
		if o.limits == ls.number && o.place == place {
			return o.num
		}
	}
	return 0
}

// idleOverflow returns the index of an overflow counter that can be reused for another place, or
// -1.
func (s *shard) idleOverflow(ms int64) int {
	return slices.IndexFunc(s.shared, func(o overflow) bool { return s.idle(o.num, ms) })
}

// noRoom reports whether addKey would return 0 for a key without an overflow counter.
func (s *shard) noRoom(ls *Limits, ms int64) bool {
	if s.kind == ofTotals || len(s.shared) < maxOverflow || s.idleOverflow(ms) >= 0 {
		return false
	}
	if s.crowded(ls) {
		return true
	}
	victim, _ := s.victim(ms)
	keys, most := s.room()
	return victim == 0 && keys.Load() >= most
}
