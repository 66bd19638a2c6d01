package ratelimit

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
)

// chores is what is to be done to a document with the next write of its counter.
type chores struct {
	remove  Removal
	pruned  int64
	rewrite []FrameCount // all frames as they should stand; nil: they may stay
	frame   bool         // the document does not say how long its frames are
	future  watch        // frames far in the future
}

// versioned reports whether the chores need a write that depends on the version.
func (t *chores) versioned() bool { return t != nil && (t.rewrite != nil || t.frame) }

// join adds the chores to a write.
func (t *chores) join(w *Write) {
	if t == nil {
		return
	}
	w.Remove, w.Pruned = t.remove, t.pruned
	if !w.Versioned || t.rewrite == nil {
		return
	}
	all := slices.Clone(t.rewrite)
	for _, d := range w.Delta {
		if i := slices.IndexFunc(all, func(f FrameCount) bool { return f.Name == d.Name }); i >= 0 {
			all[i].Count += d.Count
		} else {
			all = append(all, d)
		}
	}
	w.Delta, w.Rewrite, w.Remove.Frames = all, true, nil
}

// maxRemoved bounds what one write removes of each kind.
const maxRemoved = 32

// review decides what may leave a document that was just read, and what has to
// be mended in it. A frame that is too old, a frame far in the future, and a
// writer whose process is not alive leave it once this process has seen them
// unchanged for two windows. No clock decides that alone.
func (s *shard) review(num uint32, r *rule, ms int64, d *Document, m *merging) {
	old := s.chores[num]
	t := chores{frame: d.Version != 0 && d.Frame <= 0}
	if old != nil {
		t.future = old.future
	}
	if d.Damaged || slices.Contains(m.absurd[:], true) || d.Frame > 0 && d.Frame != r.frame {
		t.rewrite = m.rewritten(r, s.slotsOf(num), s.hot[num].start, ms, d)
	}
	for _, w := range d.Surplus {
		t.remove.Writers = append(t.remove.Writers, w)
		t.pruned = max(t.pruned, w.Seq)
	}
	if x := s.hot[num].extra; x != 0 || len(m.dead) > 0 || len(d.Silent) > 0 {
		e := s.extrasOf(num)
		t.remove.Frames = e.frames.observe(m.dead, ms, 2*r.window)
		if e.writers.unchanged(fingerprint(nil, d.Silent), len(d.Silent), ms, 2*r.window) {
			t.remove.Writers = append(t.remove.Writers, d.Silent[:min(len(d.Silent), maxRemoved)]...)
		}
	}
	t.remove.Frames = append(t.remove.Frames, t.future.observe(m.future, ms, 2*r.window)...)
	if t.remove.Frames == nil && t.remove.Writers == nil && t.rewrite == nil && !t.frame && t.future.print == 0 {
		delete(s.chores, num)
		return
	}
	if s.chores == nil {
		s.chores = map[uint32]*chores{}
	}
	s.chores[num] = &t
}

// done notes that a write has done the chores of a counter.
func (s *shard) done(num uint32, w *Write) {
	if t := s.chores[num]; t != nil {
		*t = chores{future: t.future}
	}
	if x := s.hot[num].extra; x != 0 && len(w.Remove.Frames) > 0 {
		s.extras[x].frames = watch{}
	}
}

// watch is a part of a document as it was first seen like this.
type watch struct {
	print uint64 // fingerprint; 0: nothing is watched
	mark  int64  // the newest frame that is watched
	since uint32 // tick
}

// unchanged reports whether something that is there has been as it is now for at
// least span milliseconds, by all that was seen of it.
func (w *watch) unchanged(print uint64, there int, ms, span int64) bool {
	if there == 0 {
		*w = watch{}
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
func (w *watch) observe(list []FrameCount, ms, span int64) []FrameCount {
	upTo := func() []FrameCount {
		n := 0
		for n < len(list) && list[n].Name <= w.mark {
			n++
		}
		return list[:n]
	}
	if len(list) == 0 {
		*w = watch{}
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
	return slices.Clone(covered[:min(len(covered), maxRemoved)])
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
