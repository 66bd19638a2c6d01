package ratelimit

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
)

// repairs are the repairs and removals that the next write of a counter makes in its document, and
// the conditions of that write.
type repairs struct {
	remove  Removal
	pruned  int64        // highest sequence of the surplus writers in remove
	rewrite []FrameCount // corrected list of all frames; nil: no correction needed
	frame   bool         // the document has no frame length
	convert bool         // its frame length differs from the limit's
	barred  bool         // pruned of the document is not below our sequences: it accepts only versioned writes from us
	version int64        // version of the document if cold.version is too small for it; otherwise 0
	future  observation  // of frames far in the future
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
func (t *repairs) versionOf(c *cold) (int64, bool) {
	if t != nil && t.version != 0 {
		return t.version, true
	}
	return int64(c.version), c.version < maxVersion
}

// join adds the repairs to a write of a counter whose newest frame starts at newest. It does not
// remove frames that have become part of the window since.
func (t *repairs) join(w *Write, r *rule, newest int64) {
	if t == nil {
		return
	}
	w.Remove, w.Pruned = t.remove, t.pruned
	if w.Versioned && t.rewrite != nil {
		all := slices.Clone(t.rewrite)
		for _, d := range w.Delta {
			all = addFrame(all, d)
		}
		w.Delta, w.Rewrite, w.Remove.Frames = all, true, nil
		return
	}
	oldest := newest - int64(r.Frames)*r.frame
	w.Remove.Frames = slices.DeleteFunc(slices.Clone(t.remove.Frames), func(f FrameCount) bool {
		start := FrameStart(f.Name)
		return oldest <= start && start <= newest+r.window
	})
}

// addFrame adds a count to its frame in the list and returns the list.
func addFrame(list []FrameCount, f FrameCount) []FrameCount {
	if i := slices.IndexFunc(list, func(g FrameCount) bool { return g.Name == f.Name }); i >= 0 {
		list[i].Count += f.Count
		return list
	}
	return append(list, f)
}

// Bounds of the removals in one write.
const (
	maxRemovedFrames  = 4 * MaxFrames
	maxRemovedWriters = 32
)

// review sets the repairs after a document was read. It removes frames that are too old, frames far
// in the future, and writers of dead processes. It removes each only after this process has seen it
// unchanged for two windows of elapsed time, so a wrong clock alone removes nothing.
func (s *shard) review(num uint32, r *rule, ms int64, d *Document, m *contents, v verdict) {
	old := s.repairs[num]
	t := repairs{frame: d.Frame <= 0, convert: d.Frame > 0 && d.Frame != r.frame, barred: v.seq != 0 && d.Pruned >= v.seq}
	if old != nil {
		t.future = old.future
		t.barred = t.barred || old.barred && v.seq == 0
	}
	if d.Version < 0 || d.Version >= maxVersion {
		t.version = d.Version
	}
	if d.Damaged || slices.Contains(m.invalid[:], true) || t.convert {
		t.rewrite = m.rewritten(r, s.hotOf(num).start, ms, d)
	}
	for _, w := range d.Surplus {
		t.remove.Writers = append(t.remove.Writers, w)
		t.pruned = max(t.pruned, w.Seq)
	}
	if x := s.hotOf(num).extra; x != 0 || len(m.tooOld) > 0 || len(d.Silent) > 0 {
		e := s.extrasOf(num)
		t.remove.Frames = e.frames.observe(m.tooOld, ms, 2*r.window)
		if e.writers.unchanged(fingerprint(nil, d.Silent), len(d.Silent), ms, 2*r.window) {
			t.remove.Writers = append(t.remove.Writers, d.Silent[:min(len(d.Silent), maxRemovedWriters)]...)
		}
	}
	t.remove.Frames = append(t.remove.Frames, t.future.observe(m.future, ms, 2*r.window)...)
	s.keepRepairs(num, &t)
}

// keepRepairs sets the repairs of a counter, or deletes them if nothing is left to do.
func (s *shard) keepRepairs(num uint32, t *repairs) {
	if t.remove.Frames == nil && t.remove.Writers == nil && !t.versioned() && t.version == 0 && t.future.print == 0 {
		delete(s.repairs, num)
		return
	}
	if s.repairs == nil {
		s.repairs = map[uint32]*repairs{}
	}
	s.repairs[num] = t
}

// repairsDone removes the finished repairs of a counter after its write w was applied. If the
// document was read in the same exchange, the repairs describe the document before the write.
func (s *shard) repairsDone(num uint32, w *Write, read bool) {
	if x := s.hotOf(num).extra; x != 0 && len(w.Remove.Frames) > 0 {
		s.extras[x].frames = observation{}
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
	case w.Rewrite || s.hotOf(num).flags.has(stale):
		t.rewrite, t.convert = nil, false
	case t.rewrite != nil:
		for _, d := range w.Delta {
			t.rewrite = addFrame(t.rewrite, d)
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

// observation records how long a part of a document has been seen unchanged.
type observation struct {
	print uint64 // fingerprint of the part; 0: none is observed
	mark  int64  // name of the newest frame in the part
	since uint32 // tick at which this state was first seen
}

// unchanged reports whether a part with count elements and this fingerprint has been seen unchanged
// for at least span milliseconds. If it has changed, the observation starts again.
func (w *observation) unchanged(print uint64, count int, ms, span int64) bool {
	if count == 0 {
		*w = observation{}
		return false
	}
	if w.print != print {
		w.print, w.since = print, tick(ms)
		return false
	}
	return ticksAgo(ms, w.since) >= span
}

// observe returns the frames of a list, ordered by name, that were seen unchanged for at least span
// milliseconds. When they change, it observes only the older half from then on, because a process
// with a wrong clock may still be counting in the newer half.
func (w *observation) observe(list []FrameCount, ms, span int64) []FrameCount {
	upTo := func() []FrameCount {
		n := 0
		for n < len(list) && list[n].Name <= w.mark {
			n++
		}
		return list[:n]
	}
	if len(list) == 0 {
		*w = observation{}
		return nil
	}
	if w.print == 0 {
		w.mark = list[len(list)-1].Name
	} else if w.print != fingerprint(upTo(), nil) {
		w.mark = list[(len(list)-1)/2].Name
	}
	covered := upTo()
	if !w.unchanged(fingerprint(covered, nil), len(covered), ms, span) {
		return nil
	}
	return slices.Clone(covered[:min(len(covered), maxRemovedFrames)])
}

// printSeed is the seed of the fingerprints in this process.
var printSeed = maphash.MakeSeed()

// fingerprint returns a hash of frames and writers in their order. It is never 0.
func fingerprint(frames []FrameCount, writers []WriterSeq) uint64 {
	var b []byte
	for _, f := range frames {
		b = binary.LittleEndian.AppendUint64(b, uint64(f.Name))  //nolint:gosec // its bits
		b = binary.LittleEndian.AppendUint64(b, uint64(f.Count)) //nolint:gosec // its bits
	}
	for _, w := range writers {
		b = append(append(b, w.Writer...), 0)
		b = binary.LittleEndian.AppendUint64(b, uint64(w.Seq)) //nolint:gosec // its bits
	}
	return maphash.Bytes(printSeed, b) | 1
}
