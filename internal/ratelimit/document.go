package ratelimit

import (
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

// contents is the counts of a document, sorted into the frames of one counter.
type contents struct {
	counts  [maxSlots]int64 // by frame, the newest first
	invalid [maxSlots]bool  // the document has an invalid count there: negative, or above MaxCount
	mended  [maxSlots]int64 // replacements for invalid counts; included in counts
	ahead   bool            // it has frames later than the newest, which are counted in the newest
	foreign int             // number of frames that are invalid or far in the future
	future  []FrameCount    // frames that start more than a window ahead
	tooOld  []FrameCount    // frames too old to matter, even for a process with its clock one frame behind
}

// read sorts the frames of a document into the frames of a counter. newest is the start of its
// newest frame.
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

// rewritten returns the corrected list of all frames of a document. The frames have the length that
// the rule requires, and known counts replace invalid ones. The list keeps frames that are too old
// or too far ahead to matter.
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

// strictKeep is how long the document of a strict limit is kept at least after it is too old to
// matter. The store removes it by its own clock, which may be up to this far ahead of process time.
const strictKeep = 24 * time.Hour

// expiry returns when a document may be removed. newest is the start of its newest frame.
func (r *rule) expiry(newest int64) time.Time {
	keep := time.Minute
	if r.Strict {
		keep = strictKeep
	}
	return time.UnixMilli(newest + r.frame + r.window + max(r.window, keep.Milliseconds()))
}

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
	v.seq = s.pendingSeq(num)
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
	uncertain := s.extrasOf(num).uncertain || task.Seq != 0 && res.Status == Unknown
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
func (s *shard) merge(num uint32, r *rule, ms int64, d *Document, v verdict, done *Finished) {
	there := d != nil
	if !there {
		d = &Document{}
	}
	if d.Frame > MaxWindow.Milliseconds() { // invalid, so treated as absent
		d.Frame = 0
	}
	h, c := s.hotOf(num), s.coldOf(num)
	var m contents
	m.read(r, h.start, ms, d)
	slots, mine := s.slots(h, r), s.mine(num, r)
	if d.Frame > 0 && d.Frame != r.frame {
		clear(mine) // the converting process decides which frames these counts go to
	}
	if v.included {
		s.confirm(num, r)
	}
	added, spare := s.carriedIn(num, r), int64(0)
	for j := range slots {
		if m.invalid[j] {
			known := max(int64(slots[j].known)-added[j], int64(mine[j]))
			m.mended[j] = max(known-m.counts[j], 0)
			m.counts[j] += m.mended[j]
		}
		// Counts that this process has written stay counted. If the document lacks them, they are
		// reported as lost, unless a later frame may have them: converting frames to another length
		// and back moves counts to later frames.
		if spare += m.counts[j] - int64(mine[j]); spare < 0 {
			done.Lost, spare = done.Lost-spare, 0
		}
		slots[j].known = clamp(max(m.counts[j], int64(mine[j])) + added[j])
	}
	done.Foreign = m.foreign
	c.setVersion(d.Version, d.Etag)
	c.synced = c.began
	h.flags &^= unsynced | stale | deniedSinceSync
	if r.Strict && s.leases[num] != nil {
		s.leases[num].ahead = m.ahead
	}
	h.flags.set(contended, d.Contended)
	h.holders = uint8(min(max(d.Writers, 0), 255))
	if there {
		s.review(num, r, ms, d, &m, v)
	} else {
		delete(s.repairs, num)
	}
}

// settle ends the pending write of a counter if the verdict is clear. Otherwise it prepares a
// retry.
func (s *shard) settle(num uint32, r *rule, task *Task, res Result, v verdict) {
	h, c := s.hotOf(num), s.coldOf(num)
	switch {
	case v.included:
		s.endPending(num)
	case v.appliedAfter:
		slots := s.slots(h, r)
		for j := range slots {
			slots[j].known = clamp(int64(slots[j].known) + int64(slots[j].pending))
		}
		s.confirm(num, r)
		s.endPending(num)
		switch {
		case task.Frame != r.frame: // the limit has changed, the document has not
			h.flags |= stale
		case task.Versioned:
			c.setVersion(task.Version+1, res.NewEtag)
			c.synced = c.began
			h.flags &^= stale | deniedSinceSync
		case res.Read:
			c.setVersion(int64(c.version)+1, res.NewEtag) // a guess: if another process wrote in between, the next write conflicts
		default:
			h.flags |= stale
		}
		s.repairsDone(num, &task.Write, res.Read)
	case v.void:
		slots := s.slots(h, r)
		for j := range slots {
			slots[j].count(int64(slots[j].pending))
			slots[j].pending = 0
		}
		conflicts := s.extrasOf(num).conflicts
		s.endPending(num)
		s.extrasOf(num).conflicts = min(conflicts+1, 20)
	case v.seq != 0:
		s.retryPending(num, task, res)
		if s.leasePending(num) {
			h.flags.set(readFirst, !res.Read) // the next request for permits depends on whether it was applied
		}
	}
}

// confirm moves the pending counts of a counter to mine, because the document has them.
func (s *shard) confirm(num uint32, r *rule) {
	slots, mine := s.slots(s.hotOf(num), r), s.mine(num, r)
	reframed := s.extrasOf(num).reframed
	for j := range slots {
		if !reframed {
			mine[j] = clamp(int64(mine[j]) + int64(slots[j].pending))
		}
		slots[j].pending = 0
	}
}

// endPending ends the pending write of a counter.
func (s *shard) endPending(num uint32) {
	h := s.hotOf(num)
	h.flags &^= failing | readFirst
	e := s.extrasOf(num)
	e.seq, e.fails, e.conflicts, e.uncertain, e.reframed = 0, 0, 0, false, false
	if e.frames.print == 0 && e.writers.print == 0 {
		s.dropExtras(num)
	}
}

// stuck reports whether there were too many successive conflicts to blame on other processes. The
// document must then contain a value that no condition of a write can match.
func (e *extras) stuck() bool { return e.conflicts >= 8 }

// retryPending prepares the retry of a write that is still pending.
func (s *shard) retryPending(num uint32, task *Task, res Result) {
	h, e := s.hotOf(num), s.extrasOf(num)
	switch {
	case task.Seq == 0: // the document was only read
		h.flags.set(readFirst, !res.Read)
	case res.Status == Conflict:
		e.fails, e.conflicts = 0, min(e.conflicts+1, 20)
		h.flags &^= failing | readFirst
		h.flags.set(failing, e.stuck())
		if !res.Read {
			h.flags |= stale | contended
			h.flags.set(readFirst, !task.Versioned) // the conflict may be with an earlier attempt of this write
		}
	default:
		e.uncertain = e.uncertain || res.Status == Unknown
		e.fails = min(e.fails+1, 20)
		h.flags.set(failing, e.fails > 1)
		h.flags.set(readFirst, !res.Read && e.fails > 1)
	}
}
