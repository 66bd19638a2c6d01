package ratelimit

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
)

// chores is what is to be done to a document with the next write of its counter, and
// what that write has to heed.
type chores struct {
	remove  Removal
	pruned  int64
	rewrite []FrameCount // all frames as they should stand; nil: they may stay
	frame   bool         // the document does not say how long its frames are
	convert bool         // its frames have another length
	barred  bool         // it admits no write by sequence: pruned is ahead of them
	version int64        // of the document, where a counter cannot keep it; otherwise 0
	future  observation  // frames far in the future
}

// versioned reports whether the chores need a write that depends on the version.
func (t *chores) versioned() bool {
	return t != nil && (t.rewrite != nil || t.frame || t.barred)
}

// converts reports whether the document is to be put into frames of another length
// although there is nothing to add: of a key that is denied nothing will be written,
// and its counts would be taken to have come just now at every read.
func (t *chores) converts(headroom int64) bool {
	return t != nil && t.convert && len(t.rewrite) > 0 && headroom <= 0
}

// versionOf returns the version of the document; false if it is not known.
func (t *chores) versionOf(c *cold) (int64, bool) {
	if t != nil && t.version != 0 {
		return t.version, true
	}
	return int64(c.version), c.version < maxVersion
}

// join adds the chores to the write of a counter whose newest frame begins at
// newest. A frame that came alive since stays.
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

// addFrame adds a count to its frame in a list.
func addFrame(list []FrameCount, f FrameCount) []FrameCount {
	if i := slices.IndexFunc(list, func(g FrameCount) bool { return g.Name == f.Name }); i >= 0 {
		list[i].Count += f.Count
		return list
	}
	return append(list, f)
}

// Bounds of what one write removes. Two windows of frames leave a document at once.
const (
	maxRemovedFrames  = 4 * MaxFrames
	maxRemovedWriters = 32
)

// review decides what may leave a document that was just read, and what has to
// be mended in it. A frame that is too old, a frame far in the future, and a
// writer whose process is not alive leave it once this process has seen them
// unchanged for two windows. No clock decides that alone.
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

// keep notes the chores of a counter, if there are any.
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

// done notes that a write has done the chores of a counter. Where the document was
// read along, without the write in it, the chores are new: what the write did is
// taken from them.
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

// without returns what a list has and the other has not; nil if that is nothing.
func without[T comparable](list, other []T) []T {
	list = slices.DeleteFunc(list, func(x T) bool { return slices.Contains(other, x) })
	if len(list) == 0 {
		return nil
	}
	return list
}

// watch is a part of a document as it was first seen like this.
type observation struct {
	print uint64 // fingerprint; 0: nothing is watched
	mark  int64  // the newest frame that is watched
	since uint32 // tick
}

// unchanged reports whether something that is there has been as it is now for at
// least span milliseconds, by all that was seen of it.
func (w *observation) unchanged(print uint64, there int, ms, span int64) bool {
	if there == 0 {
		*w = observation{}
		return false
	}
	if w.print != print {
		w.print, w.since = print, tick(ms)
		return false
	}
	return ticksAgo(ms, w.since) >= span
}

// observe returns those frames of a list, ordered by name, that were seen
// unchanged for at least span milliseconds. Where they change, the older half of
// them is watched next: a process whose clock is wrong may still count in the
// newer ones.
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

// printSeed keys the fingerprints of this process.
var printSeed = maphash.MakeSeed()

// fingerprint is a hash of parts of a document, in their order; never 0.
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
