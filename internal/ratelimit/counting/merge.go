package counting

import (
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/slab"
)

// verdict is the result of an exchange for the pending write of a counter.
type verdict struct {
	seq          int64 // of the pending write, or 0
	included     bool  // it was applied, and the document that was read includes it
	appliedAfter bool  // it was applied after the document was read, or none was read
	void         bool  // it was not applied, and cannot be under its sequence
	unclear      bool  // void, but it may have been applied; nothing shows it any longer
	clone        bool  // another process writes under the ID of this one
}

// verdict returns the verdict on the pending write of a counter.
//
// A counter has at most one pending write. So the sequence of this process in the document normally
// does not exceed the sequence of the pending write. If it does, a copy of this process writes
// under the same ID. The pending write then counts as applied, unless the store has refused it.
//
// If this process was removed from the writers of the document, nothing shows whether the pending
// write was applied before the removal. It is then written again, which may count it twice but
// loses nothing.
func (s *shard) verdict(num uint32, task *Task, res Result) (v verdict) {
	v.seq = s.PendingSeq(num)
	if v.seq == 0 {
		return v
	}
	if s.leasePending(num) {
		return s.leaseVerdict(num, task, res)
	}
	applied := res.Status == Applied
	if !res.Read {
		v.appliedAfter = applied
		return v
	}
	var mine, pruned int64
	if res.Document != nil {
		mine, pruned = res.Document.Mine, res.Document.Pruned
	}
	uncertain := s.ExtrasOf(num).Uncertain || task.Seq != 0 && res.Status == Unknown
	v.clone = mine > v.seq
	switch {
	case mine < v.seq:
		v.appliedAfter = applied
		v.void = !applied && pruned >= v.seq
		v.unclear = v.void && uncertain
	case v.clone && !applied && !uncertain:
		v.void = true
	default:
		v.included = true
	}
	return v
}

// merge sets the known counts of a counter from its document; d is nil if there is none. Confirmed
// writes of this process stay counted, even if the document has lost them.
func (s *shard) merge(num uint32, r *ratelimit.Rule, ms int64, d *ratelimit.Document, v verdict, done *Finished) {
	there := d != nil
	if !there {
		d = &ratelimit.Document{}
	}
	if d.Frame > ratelimit.MaxWindow.Milliseconds() { // invalid, so treated as absent
		d.Frame = 0
	}
	h, c := s.HotOf(num), s.ColdOf(num)
	var m ratelimit.Contents
	m.Read(r, h.Start, ms, d)
	slots, mine := s.Slots(h, r), s.Mine(num, r)
	if d.Frame > 0 && d.Frame != r.FrameMS {
		clear(mine) // the converting process decides which frames these counts go to
	}
	if v.included {
		s.confirm(num, r)
	}
	added, spare := s.carriedIn(num, r), int64(0)
	for j := range slots {
		if m.Invalid[j] {
			known := max(int64(slots[j].Known)-added[j], int64(mine[j]))
			m.Mended[j] = max(known-m.Counts[j], 0)
			m.Counts[j] += m.Mended[j]
		}
		// Counts that this process has written stay counted. If the document lacks them, they are
		// reported as lost, unless a later frame may have them: converting frames to another length
		// and back moves counts to later frames.
		if spare += m.Counts[j] - int64(mine[j]); spare < 0 {
			done.Lost, spare = done.Lost-spare, 0
		}
		slots[j].Known = ratelimit.Clamp(max(m.Counts[j], int64(mine[j])) + added[j])
	}
	done.Foreign = m.Foreign
	c.SetVersion(d.Version, d.Etag)
	c.Synced = c.Began
	h.Flags &^= slab.Unsynced | slab.Stale | slab.DeniedSinceSync
	if r.Strict && s.leases[num] != nil {
		s.leases[num].ahead = m.Ahead
	}
	h.Flags.Set(slab.Contended, d.Contended)
	h.Holders = uint8(min(max(d.Writers, 0), 255))
	if there {
		s.review(num, r, ms, d, &m, v)
	} else {
		delete(s.repairs, num)
	}
}

// settle ends the pending write of a counter if the verdict is clear. Otherwise it prepares a
// retry.
func (s *shard) settle(num uint32, r *ratelimit.Rule, task *Task, res Result, v verdict) {
	h, c := s.HotOf(num), s.ColdOf(num)
	switch {
	case v.included:
		s.endPending(num)
	case v.appliedAfter:
		slots := s.Slots(h, r)
		for j := range slots {
			slots[j].Known = ratelimit.Clamp(int64(slots[j].Known) + int64(slots[j].Pending))
		}
		s.confirm(num, r)
		s.endPending(num)
		switch {
		case task.Frame != r.FrameMS: // the limit has changed, the document has not
			h.Flags |= slab.Stale
		case task.Versioned:
			c.SetVersion(task.Version+1, res.NewEtag)
			c.Synced = c.Began
			h.Flags &^= slab.Stale | slab.DeniedSinceSync
		case res.Read:
			c.SetVersion(int64(c.Version)+1, res.NewEtag) // a guess: if another process wrote in between, the next write conflicts
		default:
			h.Flags |= slab.Stale
		}
		s.repairsDone(num, &task.Write, res.Read)
	case v.void:
		slots := s.Slots(h, r)
		for j := range slots {
			slots[j].Count(int64(slots[j].Pending))
			slots[j].Pending = 0
		}
		conflicts := s.ExtrasOf(num).Conflicts
		s.endPending(num)
		s.ExtrasOf(num).Conflicts = min(conflicts+1, 20)
	case v.seq != 0:
		s.retryPending(num, task, res)
		if s.leasePending(num) {
			h.Flags.Set(slab.ReadFirst, !res.Read) // the next request for permits depends on whether it was applied
		}
	}
}

// confirm moves the pending counts of a counter to mine, because the document has them.
func (s *shard) confirm(num uint32, r *ratelimit.Rule) {
	slots, mine := s.Slots(s.HotOf(num), r), s.Mine(num, r)
	reframed := s.ExtrasOf(num).Reframed
	for j := range slots {
		if !reframed {
			mine[j] = ratelimit.Clamp(int64(mine[j]) + int64(slots[j].Pending))
		}
		slots[j].Pending = 0
	}
}

// endPending ends the pending write of a counter.
func (s *shard) endPending(num uint32) {
	h := s.HotOf(num)
	h.Flags &^= slab.Failing | slab.ReadFirst
	e := s.ExtrasOf(num)
	e.Seq, e.Fails, e.Conflicts, e.Uncertain, e.Reframed = 0, 0, 0, false, false
	if e.Frames.Print == 0 && e.Writers.Print == 0 {
		s.DropExtras(num)
	}
}

// stuck reports whether there were too many successive conflicts to blame on other processes. The
// document must then contain a value that no condition of a write can match.
func stuck(e *slab.Extras) bool { return e.Conflicts >= 8 }

// retryPending prepares the retry of a write that is still pending.
func (s *shard) retryPending(num uint32, task *Task, res Result) {
	h, e := s.HotOf(num), s.ExtrasOf(num)
	switch {
	case task.Seq == 0: // the document was only read
		h.Flags.Set(slab.ReadFirst, !res.Read)
	case res.Status == Conflict:
		e.Fails, e.Conflicts = 0, min(e.Conflicts+1, 20)
		h.Flags &^= slab.Failing | slab.ReadFirst
		h.Flags.Set(slab.Failing, stuck(e))
		if !res.Read {
			h.Flags |= slab.Stale | slab.Contended
			h.Flags.Set(slab.ReadFirst, !task.Versioned) // the conflict may be with an earlier attempt of this write
		}
	default:
		e.Uncertain = e.Uncertain || res.Status == Unknown
		e.Fails = min(e.Fails+1, 20)
		h.Flags.Set(slab.Failing, e.Fails > 1)
		h.Flags.Set(slab.ReadFirst, !res.Read && e.Fails > 1)
	}
}
