package ratelimit

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
)

// chores is what the next write of a counter has to repair in its document or remove from it, and
// what that write has to depend on.
type chores struct {
	remove  Removal
	pruned  int64        // highest sequence of the surplus writers in remove
	rewrite []FrameCount // all frames as they should be; nil: as they are
	frame   bool         // the document does not have the length of its frames
	convert bool         // its frames have another length than those of the limit
	barred  bool         // its pruned is ahead of our sequences, so only versioned writes are applied
	version int64        // of the document, if cold.version cannot keep it; otherwise 0
	future  observation  // of frames far in the future
}

// versioned reports whether the next write must depend on the version of the document.
func (t *chores) versioned() bool {
	return t != nil && (t.rewrite != nil || t.frame || t.barred)
}

// converts reports whether the frames of the document must be converted although there is nothing
// to add. While a key is denied nothing is written of it, and at every read its counts would be
// assumed to have come just now.
func (t *chores) converts(headroom int64) bool {
	return t != nil && t.convert && len(t.rewrite) > 0 && headroom <= 0
}

// versionOf returns the version of the document of a counter; false if it is not known.
func (t *chores) versionOf(c *cold) (int64, bool) {
	if t != nil && t.version != 0 {
		return t.version, true
	}
	return int64(c.version), c.version < maxVersion
}

// join adds the chores to a write of a counter whose newest frame begins at newest. A frame that
// has meanwhile become part of the window is not removed.
func (t *chores) join(w *Write, r *rule, newest int64) {
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

// addFrame returns the list with a count added to its frame.
func addFrame(list []FrameCount, f FrameCount) []FrameCount {
	if i := slices.IndexFunc(list, func(g FrameCount) bool { return g.Name == f.Name }); i >= 0 {
		list[i].Count += f.Count
		return list
	}
	return append(list, f)
}

// Bounds of what one write removes.
const (
	maxRemovedFrames  = 4 * MaxFrames
	maxRemovedWriters = 32
)

// review sets the chores for a document that was just read. A frame that is too old, a frame far in
// the future, and a writer whose process is not alive are removed once this process has seen them
// unchanged for two windows of elapsed time: no clock alone removes anything.
func (s *shard) review(num uint32, r *rule, ms int64, d *Document, m *contents, v verdict) {
	old := s.chores[num]
	t := chores{frame: d.Frame <= 0, convert: d.Frame > 0 && d.Frame != r.frame, barred: v.seq != 0 && d.Pruned >= v.seq}
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
	s.keepChores(num, &t)
}

// keepChores sets the chores of a counter, or deletes them if there are none.
func (s *shard) keepChores(num uint32, t *chores) {
	if t.remove.Frames == nil && t.remove.Writers == nil && !t.versioned() && t.version == 0 && t.future.print == 0 {
		delete(s.chores, num)
		return
	}
	if s.chores == nil {
		s.chores = map[uint32]*chores{}
	}
	s.chores[num] = t
}

// choresDone removes from the chores of a counter what an applied write has done. If the document
// was read in the same exchange, the chores are those of the document without the write.
func (s *shard) choresDone(num uint32, w *Write, read bool) {
	if x := s.hotOf(num).extra; x != 0 && len(w.Remove.Frames) > 0 {
		s.extras[x].frames = observation{}
	}
	t := s.chores[num]
	if t == nil {
		return
	}
	if t.version != 0 && w.Versioned {
		t.version = w.Version + 1
	}
	if !read {
		s.keepChores(num, &chores{future: t.future, barred: t.barred, version: t.version})
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
	s.keepChores(num, t)
}

// without returns the elements of list that are not in other; nil if there are none.
func without[T comparable](list, other []T) []T {
	list = slices.DeleteFunc(list, func(x T) bool { return slices.Contains(other, x) })
	if len(list) == 0 {
		return nil
	}
	return list
}

// observation is how long a part of a document has been seen unchanged.
type observation struct {
	print uint64 // fingerprint of the part; 0: nothing is observed
	mark  int64  // name of the newest frame in the part
	since uint32 // tick at which the part was first seen like this
}

// unchanged reports whether a part of count elements with that fingerprint has been seen unchanged
// for at least span milliseconds, and starts anew if it has changed.
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

// observe returns those frames of a list, which is ordered by name, that were seen unchanged for at
// least span milliseconds. If they change, only the older half of them is observed from then on: a
// process whose clock is wrong may still count in the newer ones.
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

// printSeed is the seed of the fingerprints of this process.
var printSeed = maphash.MakeSeed()

// fingerprint returns a hash of frames and writers in their order; it is never 0.
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
