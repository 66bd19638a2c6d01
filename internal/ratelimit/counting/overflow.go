package counting

import (
	"slices"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/slab"
)

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
func (s *shard) addKey(k ratelimit.Key, h slab.Hash, ls *ratelimit.Limits, ms int64) uint32 {
	place := placeOf(h)
	if !s.crowded(ls) && (s.reserve() || s.evict(ms)) {
		first := s.Insert(k, h, ls, ms)
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
func (s *shard) overflow(ls *ratelimit.Limits, place uint32, ms int64) uint32 {
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
	num := s.Chain(0, [3]uint32{}, ls, ms)
	for n := num; n != 0; n = s.HotOf(n).Next {
		s.HotOf(n).Flags = slab.Pooled
	}
	s.shared[free] = overflow{limits: ls.Number, place: place, num: num}
	return num
}

// placeOf returns the place of a key among the overflow counters of its shard.
func placeOf(h slab.Hash) uint32 { return uint32(h.Lo % overflowPlaces) }

// findOverflow returns the overflow counter of a place, or 0.
func (s *shard) findOverflow(ls *ratelimit.Limits, place uint32) uint32 {
	for _, o := range s.shared {
		if o.limits == ls.Number && o.place == place {
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
func (s *shard) noRoom(ls *ratelimit.Limits, ms int64) bool {
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
	put(&s.carried, num, append(s.carried[num], carry{at: at, n: n}))
	s.HotOf(num).Flags |= slab.Carried
}

// carriedIn returns the carried counts of a counter by frame, the newest first. It drops counts
// that are too old to matter.
func (s *shard) carriedIn(num uint32, r *ratelimit.Rule) (in [ratelimit.MaxSlots]int64) {
	h := s.HotOf(num)
	if !h.Flags.Has(slab.Carried) {
		return in
	}
	list := s.carried[num]
	kept := list[:0]
	for _, c := range list {
		if j, there := r.Index(h.Start, c.at); there {
			in[j] += c.n
			kept = append(kept, c)
		}
	}
	if len(kept) == 0 {
		delete(s.carried, num)
		h.Flags &^= slab.Carried
		return in
	}
	s.carried[num] = kept
	return in
}

// addCarried adds the carried counts of a counter to its known counts, which must not include them
// yet.
func (s *shard) addCarried(num uint32, r *ratelimit.Rule) {
	in := s.carriedIn(num, r)
	slots := s.Slots(s.HotOf(num), r)
	for j := range slots {
		slots[j].Known = ratelimit.Clamp(int64(slots[j].Known) + in[j])
	}
}

// inheritOverflow makes the new counters of a key carry all counts of its overflow counter, because
// any of them may belong to this key.
func (s *shard) inheritOverflow(first, shared uint32, ls *ratelimit.Limits, ms int64) {
	from, _ := s.ChainOf(shared)
	to, n := s.ChainOf(first)
	for i := range n {
		r := &ls.Rules[i]
		s.advance(from[i], r, ms)
		start := s.HotOf(from[i]).Start
		for j, slot := range s.Slots(s.HotOf(from[i]), r) {
			s.carry(to[i], ratelimit.EndOf(start-int64(j)*r.FrameMS, r.FrameMS, ms), slot.Total(1))
		}
		s.addCarried(to[i], r)
	}
}
