package ratelimit

import (
	"slices"
	"time"
)

// CounterID identifies the document of a counter.
type CounterID struct {
	ClientID string
	Username string
	Limit    string // empty for the first limit of a policy
}

// FrameCount is the count of one frame in a document.
type FrameCount struct {
	Name  int64 // [FrameStart] converts it to a time
	Count int64
}

// WriterSeq is one entry in the writers of a document: a writer, and its highest sequence that was
// applied.
type WriterSeq struct {
	Writer string
	Seq    int64
}

// Removal has the entries that a write removes from a document, each with the value that was last
// read.
type Removal struct {
	Frames  []FrameCount
	Writers []WriterSeq
}

// Document is a counter in the store. The zero value means that no document exists.
type Document struct {
	Version, Etag int64
	Frame         int64 // length of its frames in milliseconds; 0: not in the document
	Pruned        int64 // highest sequence of any removed writer that may write again
	Frames        []FrameCount
	Damaged       bool // it has invalid frames, which Frames omits

	Mine      int64       // highest applied sequence of this process; 0: none
	Writers   int         // processes that may hold back counts, this one included; 0: unknown
	Contended bool        // other processes wrote it recently
	Silent    []WriterSeq // writers of dead processes, in a stable order
	Surplus   []WriterSeq // the part of Silent above the bound
}

// Contents is the counts of a document, sorted into the frames of one counter.
type Contents struct {
	Counts  [MaxSlots]int64 // by frame, the newest first
	Invalid [MaxSlots]bool  // the document has an invalid count there: negative, or above MaxCount
	Mended  [MaxSlots]int64 // replacements for invalid counts; included in Counts
	Ahead   bool            // it has frames later than the newest, which are counted in the newest
	Foreign int             // number of frames that are invalid or far in the future
	Future  []FrameCount    // frames that start more than a window ahead
	TooOld  []FrameCount    // frames too old to matter, even for a process with its clock one frame behind
}

// Read sorts the frames of a document into the frames of a counter. newest is the start of its
// newest frame.
func (m *Contents) Read(r *Rule, newest, ms int64, d *Document) {
	length := d.Frame
	if length <= 0 {
		length = r.FrameMS
	}
	for _, fc := range d.Frames {
		start := FrameStart(fc.Name)
		if start-ms > r.WindowMS+r.LeadMS {
			m.Foreign++
			m.Future = append(m.Future, fc)
			continue
		}
		at := start
		if length != r.FrameMS {
			at = EndOf(start, length, ms)
		}
		j, there := r.Index(newest, at)
		m.Ahead = m.Ahead || r.align(at) > newest
		invalid := fc.Count < 0 || fc.Count > MaxCount
		if invalid {
			m.Foreign++
		}
		switch {
		case there && invalid:
			m.Invalid[j] = true
		case there:
			m.Counts[j] = min(m.Counts[j]+fc.Count, MaxCount)
		case newest-r.align(at) > int64(r.Kept())*r.FrameMS:
			m.TooOld = append(m.TooOld, fc)
		}
	}
}

// Rewritten returns the corrected list of all frames of a document. The frames have the length that
// the rule requires, and known counts replace invalid ones. The list keeps frames that are too old
// or too far ahead to matter.
func (m *Contents) Rewritten(r *Rule, newest, ms int64, d *Document) []FrameCount {
	length := d.Frame
	if length <= 0 {
		length = r.FrameMS
	}
	out := []FrameCount{} // nil would mean that the frames stay as they are
	add := func(start, count int64) {
		out = AddFrame(out, FrameCount{Name: FrameName(r.align(start), r.FrameMS), Count: count})
	}
	for _, fc := range d.Frames {
		if fc.Count > 0 && fc.Count <= MaxCount {
			add(EndOf(FrameStart(fc.Name), length, ms), fc.Count)
		}
	}
	for j, n := range m.Mended {
		if n > 0 {
			add(newest-int64(j)*r.FrameMS, n)
		}
	}
	return out
}

// strictKeep is how long the document of a strict limit is kept at least after it is too old to
// matter. The store removes it by its own clock, which may be up to this far ahead of process time.
const strictKeep = 24 * time.Hour

// Expiry returns when a document may be removed. newest is the start of its newest frame.
func (r *Rule) Expiry(newest int64) time.Time {
	keep := time.Minute
	if r.Strict {
		keep = strictKeep
	}
	return time.UnixMilli(newest + r.FrameMS + r.WindowMS + max(r.WindowMS, keep.Milliseconds()))
}

// AddFrame adds a count to its frame in the list and returns the list.
func AddFrame(list []FrameCount, f FrameCount) []FrameCount {
	if i := slices.IndexFunc(list, func(g FrameCount) bool { return g.Name == f.Name }); i >= 0 {
		list[i].Count += f.Count
		return list
	}
	return append(list, f)
}
