package ratelimit

import (
	"time"
)

// CounterID names the document of a counter.
type CounterID struct {
	ClientID string
	Username string
	Limit    string // empty for the first limit of a policy
}

// FrameCount is the count of one frame.
type FrameCount struct {
	Name  int64 // as it stands in the document; see [FrameStart]
	Count int64
}

// WriterSeq is an entry of a document's writers: the highest sequence of that
// writer which was applied.
type WriterSeq struct {
	Writer string
	Seq    int64
}

// Removal is what is to leave a document, each with the value that it was last
// seen with.
type Removal struct {
	Frames  []FrameCount
	Writers []WriterSeq
}

// Document is a counter as the store has it. The zero value is no document.
type Document struct {
	Version, Etag int64
	Frame         int64 // length of its frames in milliseconds; 0: it does not say
	Pruned        int64 // highest sequence of a writer that was removed although it may come back
	Frames        []FrameCount
	Damaged       bool // it has frames that Frames leaves out and that make no sense

	Mine      int64       // highest sequence of this process that was applied, 0 for none
	Writers   int         // processes that may hold counts back, this one included; 0 if not known
	Contended bool        // others wrote it lately
	Silent    []WriterSeq // writers of processes that are not alive, in a stable order
	Surplus   []WriterSeq // of those, the ones that are too many
}

// merging sorts out what a document has.
type contents struct {
	counts  [MaxFrames + 1]int64 // by frame, the newest first
	invalid [MaxFrames + 1]bool  // the document has no sensible count there
	mended  [MaxFrames + 1]int64 // what is known to be missing there; part of counts
	foreign int                  // frames that make no sense: absurd, or far in the future
	future  []FrameCount         // those far in the future
	tooOld  []FrameCount         // those too old to matter, even to a process whose clock is a frame behind
}

// read sorts out the frames of a document for a counter whose newest frame
// begins at newest.
func (m *contents) read(r *rule, newest, ms int64, d *Document) {
	length := d.Frame
	if length <= 0 {
		length = r.frame
	}
	for _, fc := range d.Frames {
		start := FrameStart(fc.Name)
		if start-ms > r.window {
			m.foreign++
			m.future = append(m.future, fc)
			continue
		}
		at := start
		if length != r.frame {
			at = endOf(start, length, ms)
		}
		j, there := r.index(newest, at)
		absurd := fc.Count < 0 || fc.Count > MaxCount
		if absurd {
			m.foreign++
		}
		switch {
		case there && absurd:
			m.invalid[j] = true
		case there:
			m.counts[j] = min(m.counts[j]+fc.Count, MaxCount)
		case newest-r.align(at) > int64(r.frames())*r.frame:
			m.tooOld = append(m.tooOld, fc)
		}
	}
}

// rewritten returns all frames of a document as they should stand: with the
// length of the rule, and with known counts where the document has none that
// make sense. What is too old or too far ahead to matter stays.
func (m *contents) rewritten(r *rule, newest, ms int64, d *Document) []FrameCount {
	length := d.Frame
	if length <= 0 {
		length = r.frame
	}
	out := []FrameCount{} // nil would mean that they may stay
	add := func(start, count int64) {
		out = addFrame(out, FrameCount{Name: frameName(r.align(start), r.frame), Count: count})
	}
	for _, fc := range d.Frames {
		if fc.Count > 0 && fc.Count <= MaxCount {
			add(endOf(FrameStart(fc.Name), length, ms), fc.Count)
		}
	}
	for j, n := range m.mended {
		if n > 0 {
			add(newest-int64(j)*r.frame, n)
		}
	}
	return out
}

// expiry is when nothing of a document matters any more whose newest frame
// begins at newest.
func (r *rule) expiry(newest int64) time.Time {
	return time.UnixMilli(newest + r.frame + r.window + max(r.window, time.Minute.Milliseconds()))
}
