package ratelimit

import (
	"time"
)

// CounterID is the ID of a counter's document.
type CounterID struct {
	ClientID string
	Username string
	Limit    string // empty for the first limit of a policy
}

// FrameCount is the count of one frame in a document.
type FrameCount struct {
	Name  int64 // [FrameStart] returns the time it stands for
	Count int64
}

// WriterSeq is an entry of a document's writers: a writer and the highest of its sequences that was
// applied.
type WriterSeq struct {
	Writer string
	Seq    int64
}

// Removal is what a write removes from a document, each entry with the value that it was last read
// with.
type Removal struct {
	Frames  []FrameCount
	Writers []WriterSeq
}

// Document is a counter as it is in the store. The zero value stands for no document.
type Document struct {
	Version, Etag int64
	Frame         int64 // length of its frames in milliseconds; 0: not in the document
	Pruned        int64 // highest sequence of a writer that was removed although it may write again
	Frames        []FrameCount
	Damaged       bool // it has invalid frames that Frames leaves out

	Mine      int64       // highest sequence of this process that was applied; 0: none
	Writers   int         // processes that may hold back counts, this one included; 0: not known
	Contended bool        // other processes wrote it recently
	Silent    []WriterSeq // writers of processes that are not alive, in a stable order
	Surplus   []WriterSeq // of those, the ones above the bound
}

// contents is what a document has for one counter, by frame.
type contents struct {
	counts  [maxSlots]int64 // by frame, the newest first
	invalid [maxSlots]bool  // the document has an invalid count there: negative, or above MaxCount
	mended  [maxSlots]int64 // what this process adds there instead; part of counts
	ahead   bool            // it has frames later than the newest, which count there
	foreign int             // number of frames that are invalid or far in the future
	future  []FrameCount    // frames that begin more than a window ahead
	tooOld  []FrameCount    // frames too old to matter, even to a process whose clock is a frame behind
}

// read sorts the frames of a document into those of a counter whose newest frame begins at newest.
func (m *contents) read(r *rule, newest, ms int64, d *Document) {
	length := d.Frame
	if length <= 0 {
		length = r.frame
	}
	for _, fc := range d.Frames {
		start := FrameStart(fc.Name)
		if start-ms > r.window+r.lead {
			m.foreign++
			m.future = append(m.future, fc)
			continue
		}
		at := start
		if length != r.frame {
			at = endOf(start, length, ms)
		}
		j, there := r.index(newest, at)
		m.ahead = m.ahead || r.align(at) > newest
		invalid := fc.Count < 0 || fc.Count > MaxCount
		if invalid {
			m.foreign++
		}
		switch {
		case there && invalid:
			m.invalid[j] = true
		case there:
			m.counts[j] = min(m.counts[j]+fc.Count, MaxCount)
		case newest-r.align(at) > int64(r.frames())*r.frame:
			m.tooOld = append(m.tooOld, fc)
		}
	}
}

// rewritten returns all frames of a document as they should be: with the length of the rule, and
// with known counts instead of invalid ones. Frames that are too old or too far ahead to matter
// stay.
func (m *contents) rewritten(r *rule, newest, ms int64, d *Document) []FrameCount {
	length := d.Frame
	if length <= 0 {
		length = r.frame
	}
	out := []FrameCount{} // nil would mean that the frames stay as they are
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

// strictKeep is how long the document of a strict limit is kept at least when it is too old to matter.
// The store removes it by its own clock, which may be ahead of process time by less than that.
const strictKeep = 24 * time.Hour

// expiry returns when a document whose newest frame begins at newest may be removed.
func (r *rule) expiry(newest int64) time.Time {
	keep := time.Minute
	if r.Strict {
		keep = strictKeep
	}
	return time.UnixMilli(newest + r.frame + r.window + max(r.window, keep.Milliseconds()))
}
