package counting

import (
	"slices"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/slab"
)

// repairs are the repairs and removals that the next write of a counter makes in its document, and
// the conditions of that write.
type repairs struct {
	remove  ratelimit.Removal
	pruned  int64                  // highest sequence of the surplus writers in remove
	rewrite []ratelimit.FrameCount // corrected list of all frames; nil: no correction needed
	frame   bool                   // the document has no frame length
	convert bool                   // its frame length differs from the limit's
	barred  bool                   // pruned of the document is not below our sequences: it accepts only versioned writes from us
	version int64                  // version of the document if Cold.Version is too small for it; otherwise 0
	future  slab.Observation       // of frames far in the future
}

// versioned reports whether the next write must be conditional on the version of the document.
func (t *repairs) versioned() bool {
	return t != nil && (t.rewrite != nil || t.frame || t.barred)
}

// converts reports whether the frames of the document must be converted although there is nothing
// to add. While a key is denied, nothing is written to its document. Without a conversion every
// read would treat its counts as if they had just arrived.
func (t *repairs) converts(headroom int64) bool {
	return t != nil && t.convert && len(t.rewrite) > 0 && headroom <= 0
}

// versionOf returns the version of the document of a counter, or false if it is unknown.
func (t *repairs) versionOf(c *slab.Cold) (int64, bool) {
	if t != nil && t.version != 0 {
		return t.version, true
	}
	return int64(c.Version), c.Version < slab.MaxVersion
}

// join adds the repairs to a write of a counter whose newest frame starts at newest. It does not
// remove frames that have become part of the window since.
func (t *repairs) join(w *Write, r *ratelimit.Rule, newest int64) {
	if t == nil {
		return
	}
	w.Remove, w.Pruned = t.remove, t.pruned
	if w.Versioned && t.rewrite != nil {
		all := slices.Clone(t.rewrite)
		for _, d := range w.Delta {
			all = ratelimit.AddFrame(all, d)
		}
		w.Delta, w.Rewrite, w.Remove.Frames = all, true, nil
		return
	}
	oldest := newest - int64(r.Frames)*r.FrameMS
	w.Remove.Frames = slices.DeleteFunc(slices.Clone(t.remove.Frames), func(f ratelimit.FrameCount) bool {
		start := ratelimit.FrameStart(f.Name)
		return oldest <= start && start <= newest+r.WindowMS
	})
}

// review sets the repairs after a document was read. It removes frames that are too old, frames far
// in the future, and writers of dead processes. It removes each only after this process has seen it
// unchanged for two windows of elapsed time, so a wrong clock alone removes nothing.
func (s *shard) review(num uint32, r *ratelimit.Rule, ms int64, d *ratelimit.Document, m *ratelimit.Contents, v verdict) {
	old := s.repairs[num]
	t := repairs{frame: d.Frame <= 0, convert: d.Frame > 0 && d.Frame != r.FrameMS, barred: v.seq != 0 && d.Pruned >= v.seq}
	if old != nil {
		t.future = old.future
		t.barred = t.barred || old.barred && v.seq == 0
	}
	if d.Version < 0 || d.Version >= slab.MaxVersion {
		t.version = d.Version
	}
	if d.Damaged || slices.Contains(m.Invalid[:], true) || t.convert {
		t.rewrite = m.Rewritten(r, s.HotOf(num).Start, ms, d)
	}
	for _, w := range d.Surplus {
		t.remove.Writers = append(t.remove.Writers, w)
		t.pruned = max(t.pruned, w.Seq)
	}
	if x := s.HotOf(num).Extra; x != 0 || len(m.TooOld) > 0 || len(d.Silent) > 0 {
		e := s.ExtrasOf(num)
		t.remove.Frames = e.Frames.Observe(m.TooOld, ms, 2*r.WindowMS)
		if e.Writers.Unchanged(slab.Fingerprint(nil, d.Silent), len(d.Silent), ms, 2*r.WindowMS) {
			t.remove.Writers = append(t.remove.Writers, d.Silent[:min(len(d.Silent), slab.MaxRemovedWriters)]...)
		}
	}
	t.remove.Frames = append(t.remove.Frames, t.future.Observe(m.Future, ms, 2*r.WindowMS)...)
	s.keepRepairs(num, &t)
}

// keepRepairs sets the repairs of a counter, or deletes them if nothing is left to do.
func (s *shard) keepRepairs(num uint32, t *repairs) {
	if t.remove.Frames == nil && t.remove.Writers == nil && !t.versioned() && t.version == 0 && t.future.Print == 0 {
		delete(s.repairs, num)
		return
	}
	put(&s.repairs, num, t)
}

// repairsDone removes the finished repairs of a counter after its write w was applied. If the
// document was read in the same exchange, the repairs describe the document before the write.
func (s *shard) repairsDone(num uint32, w *Write, read bool) {
	if x := s.HotOf(num).Extra; x != 0 && len(w.Remove.Frames) > 0 {
		s.Extras[x].Frames = slab.Observation{}
	}
	t := s.repairs[num]
	if t == nil {
		return
	}
	if t.version != 0 && w.Versioned {
		t.version = w.Version + 1
	}
	if !read {
		s.keepRepairs(num, &repairs{future: t.future, barred: t.barred, version: t.version})
		return
	}
	t.frame = false
	t.remove.Frames = without(t.remove.Frames, w.Remove.Frames)
	t.remove.Writers = without(t.remove.Writers, w.Remove.Writers)
	if t.pruned <= w.Pruned {
		t.pruned = 0
	}
	switch {
	case w.Rewrite || s.HotOf(num).Flags.Has(slab.Stale):
		t.rewrite, t.convert = nil, false
	case t.rewrite != nil:
		for _, d := range w.Delta {
			t.rewrite = ratelimit.AddFrame(t.rewrite, d)
		}
	}
	s.keepRepairs(num, t)
}

// without returns the elements of list that are not in other, or nil if nothing is left.
func without[T comparable](list, other []T) []T {
	list = slices.DeleteFunc(list, func(x T) bool { return slices.Contains(other, x) })
	if len(list) == 0 {
		return nil
	}
	return list
}
