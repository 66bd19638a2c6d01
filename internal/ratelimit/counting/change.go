package counting

import (
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/slab"
)

// change puts a key under other limits and returns its new first counter. A limit that keeps its
// name keeps its counts. Pending exchanges are planned again, even if the request that found the
// key is denied.
func (s *shard) change(q *queue, first uint32, h slab.Hash, ls *ratelimit.Limits, ms int64) uint32 {
	was := ratelimit.LimitsOf(s.HotOf(first).Limits)
	if was.SameDocuments(ls) {
		s.adopt(q, first, was, ls, ms)
		return first
	}
	next := s.Chain(s.ColdOf(first).Name, h.Parts(), ls, ms)
	s.HotOf(next).Seen = s.HotOf(first).Seen
	old, n := s.ChainOf(first)
	to, m := s.ChainOf(next)
	for i := range m {
		for j := range n {
			if ls.Rules[i].Name == was.Rules[j].Name {
				s.inherit(to[i], &ls.Rules[i], old[j], &was.Rules[j], ms)
				if s.HotOf(old[j]).State != slab.Quiet {
					s.replan(q, to[i])
				}
			}
		}
	}
	s.Unlink(first)
	s.unchain(first)
	s.Link(next)
	return next
}

// adopt puts the counters of a key under other limits with the same names.
func (s *shard) adopt(q *queue, first uint32, was, ls *ratelimit.Limits, ms int64) {
	ls.Hold()
	defer was.Release()
	nums, n := s.ChainOf(first)
	for i := range n {
		num := nums[i]
		s.reframe(num, &was.Rules[i], &ls.Rules[i], ms)
		if ls.Rules[i].Requests < was.Rules[i].Requests {
			s.recall(num, &ls.Rules[i])
		}
		h := s.HotOf(num)
		h.Limits = ls.Number
		if h.State != slab.Quiet && h.State < slab.Busy {
			s.replan(q, num)
		}
	}
	s.serve(first, ms)
}

// inherit moves the counts of the old counter of a limit to the new one after the list of limits
// has changed.
func (s *shard) inherit(num uint32, r *ratelimit.Rule, old uint32, was *ratelimit.Rule, ms int64) {
	s.advance(old, was, ms)
	if was.Strict {
		s.forgoLease(old, was)
	}
	moved, reframed := was.Doc != r.Doc, !was.SameFrames(r)
	from := s.Slots(s.HotOf(old), was)
	mine := s.Mine(old, was)
	s.HotOf(num).Start = s.HotOf(old).Start
	if reframed {
		s.HotOf(num).Start = r.Newest(ms)
	}
	for j := range from {
		slot, own, at := from[j], mine[j], ratelimit.EndOf(s.HotOf(old).Start-int64(j)*was.FrameMS, was.FrameMS, ms)
		if moved {
			// The limit now has another document. It will not contain the counts of the old
			// document, nor those of the pending write.
			s.carry(num, at, int64(slot.Known)+int64(slot.Pending))
			slot.Known, slot.Pending, own = 0, 0, 0
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
	h, c := s.HotOf(num), s.ColdOf(num)
	h.Flags, h.Holders = s.HotOf(old).Flags, s.HotOf(old).Holders
	h.Flags.Set(slab.Stale, reframed || h.Flags.Has(slab.Stale))
	c.Etag, c.Version, c.Began, c.Synced, c.Recent = s.ColdOf(old).Etag, s.ColdOf(old).Version, s.ColdOf(old).Began, s.ColdOf(old).Synced, s.ColdOf(old).Recent
	h.Extra, s.HotOf(old).Extra = s.HotOf(old).Extra, 0
	if s.PendingSeq(num) != 0 {
		s.ExtrasOf(num).Reframed = reframed || s.ExtrasOf(num).Reframed
	}
	h.Flags.Set(slab.ReadFirst, s.PendingSeq(num) != 0) // Finish will not find the counter of the current exchange
}

// reframe moves the counts of a counter to the frames of another rule.
func (s *shard) reframe(num uint32, was, r *ratelimit.Rule, ms int64) {
	if was.SameFrames(r) {
		return
	}
	s.advance(num, was, ms)
	if was.Strict {
		s.forgoLease(num, was)
	}
	h := s.HotOf(num)
	var slots [ratelimit.MaxSlots]ratelimit.Slot
	n := copy(slots[:], s.Slots(h, was))
	start := h.Start
	if was.IsFar() {
		s.FarOf(was.Kept()).Release(h.Near[0].Known)
	}
	h.Near, s.ColdOf(num).Mine = [2]ratelimit.Slot{}, [2]uint32{}
	delete(s.repairs, num) // which frames are too old depends on the window
	if h.Extra != 0 {
		s.Extras[h.Extra].Frames, s.Extras[h.Extra].Writers = slab.Observation{}, slab.Observation{}
	}
	if r.IsFar() {
		h.Near[0].Known = s.FarOf(r.Kept()).Alloc()
	}
	h.Start = r.Newest(ms)
	for j := range n {
		// mine starts at 0: the process that converts the document may put this process's counts
		// into another frame.
		s.put(num, r, ratelimit.EndOf(start-int64(j)*was.FrameMS, was.FrameMS, ms), slots[j], 0)
	}
	h.Flags |= slab.Stale // the document is still in frames of the old length
	if s.PendingSeq(num) != 0 {
		s.ExtrasOf(num).Reframed = true
	}
}

// put adds the counts of a slot to the frame that contains the time at, and own to mine. It drops
// counts that are too old to matter.
func (s *shard) put(num uint32, r *ratelimit.Rule, at int64, from ratelimit.Slot, own uint32) {
	h := s.HotOf(num)
	j, there := r.Index(h.Start, at)
	if !there {
		if lost := int64(from.Pending) + int64(from.Unclaimed); lost > 0 {
			s.all.expired.Add(lost)
		}
		return
	}
	to := &s.Slots(h, r)[j]
	to.Known = ratelimit.Clamp(int64(to.Known) + int64(from.Known))
	to.Pending = int32(min(max(int64(to.Pending)+int64(from.Pending), -ratelimit.MaxCount), ratelimit.MaxCount))
	to.Count(int64(from.Unclaimed))
	mine := &s.Mine(num, r)[j]
	*mine = ratelimit.Clamp(int64(*mine) + int64(own))
}
