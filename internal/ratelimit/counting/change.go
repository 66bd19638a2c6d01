package counting

import (
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/slab"
)

// change puts a key under other limits and returns its first counter. A limit that keeps its name
// and its document keeps its counter, with an exchange that is under way. A limit that keeps only its
// name has another document, and takes the counts along. Pending exchanges are planned again, even if
// the request that found the key is denied.
func (s *shard) change(q *queue, first uint32, h slab.Hash, ls *ratelimit.Limits, ms int64) uint32 {
	was, name, seen := ratelimit.LimitsOf(s.HotOf(first).Limits), s.ColdOf(first).Name, s.HotOf(first).Seen
	ls.Hold()
	defer was.Release()
	old, n := s.ChainOf(first)
	var next [ratelimit.MaxLimits]uint32
	for i := range ls.Rules {
		r, j := &ls.Rules[i], was.Find(ls.Rules[i].Name)
		if j >= 0 && was.Rules[j].Doc == r.Doc {
			next[i], old[j] = old[j], 0
			s.keep(q, next[i], &was.Rules[j], r, ms)
			continue
		}
		next[i] = s.Add(name, r, ms)
		if j >= 0 {
			s.inherit(q, next[i], r, old[j], &was.Rules[j], ms)
		}
	}
	if next[0] != first {
		s.abandon(first)
		s.Unlink(first)
	}
	for _, num := range old[:n] {
		if num != 0 {
			s.free(num)
		}
	}
	s.Join(next[:len(ls.Rules)], h.Parts(), seen, ls)
	if next[0] != first {
		s.Link(next[0])
	}
	s.serve(next[0], ms)
	return next[0]
}

// keep puts a counter under another limit with the same document.
func (s *shard) keep(q *queue, num uint32, was, r *ratelimit.Rule, ms int64) {
	s.reframe(num, was, r, ms)
	if r.Requests < was.Requests {
		s.recall(num, r)
	}
	if st := s.HotOf(num).State; st != slab.Quiet && st < slab.Busy {
		s.replan(q, num)
	}
}

// inherit gives a new counter the counts of the old counter of its limit, which had another document.
// The new document will not contain the counts of the old one, nor those of the pending write, so the
// counter carries them.
func (s *shard) inherit(q *queue, num uint32, r *ratelimit.Rule, old uint32, was *ratelimit.Rule, ms int64) {
	s.advance(old, was, ms)
	if was.Strict {
		s.forgoLease(old, was)
	}
	for j, slot := range s.Slots(s.HotOf(old), was) {
		at := ratelimit.EndOf(s.HotOf(old).Start-int64(j)*was.FrameMS, was.FrameMS, ms)
		s.carry(num, at, int64(slot.Known)+int64(slot.Pending))
		s.put(num, r, at, ratelimit.Slot{Unclaimed: slot.Unclaimed})
	}
	s.addCarried(num, r)
	if s.HotOf(old).State != slab.Quiet {
		s.replan(q, num)
	}
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
	// Mine starts at 0: the process that converts the document may put this process's counts into
	// another frame.
	s.Reslot(num, was, r)
	delete(s.repairs, num) // which frames are too old depends on the window
	if h.Extra != 0 {
		s.Extras[h.Extra].Frames, s.Extras[h.Extra].Writers = slab.Observation{}, slab.Observation{}
	}
	h.Start = r.Newest(ms)
	for j := range n {
		s.put(num, r, ratelimit.EndOf(start-int64(j)*was.FrameMS, was.FrameMS, ms), slots[j])
	}
	h.Flags |= slab.Stale // the document is still in frames of the old length
	if s.PendingSeq(num) != 0 {
		s.ExtrasOf(num).Reframed = true
	}
}

// put adds the counts of a slot to the frame that contains the time at. It drops counts that are too
// old to matter.
func (s *shard) put(num uint32, r *ratelimit.Rule, at int64, from ratelimit.Slot) {
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
}
