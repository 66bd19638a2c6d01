package ratelimit

// This file has the exchange of a strict counter: which permits it requests or gives back, and how
// it handles the outcome.

// need is the next step of a strict counter.
type need struct {
	act   bool  // start an exchange now
	state state // otherwise: the state to wait in, or quiet
	wait  int64 // how long to wait, milliseconds
}

// needs returns the next step of a strict counter without a pending write.
func (s *shard) needs(num uint32, r *rule, ms int64, q *queue) need {
	h, l := s.hotOf(num), s.leaseOf(num)
	slots, held := s.slots(h, r), l.held[0]+l.held[1]
	owing := dirty(slots)
	if q.final.Load() {
		return need{act: owing || held > 0}
	}
	present, g := h.start-r.frame, &s.all.leasing
	if w := s.demand(num); w > 0 && !g.shut(r, ms) {
		t := g.target(r, present, ms)
		switch from := h.start - int64(t)*r.frame + g.uncertainty(ms); {
		case w > l.held[t]:
			return need{act: l.after <= ms, state: urgent, wait: l.after - ms}
		case ms < from:
			return need{state: urgent, wait: from - ms}
		}
	}
	headroom := r.Requests - s.frames(num, r).whole
	if owing {
		if l.owed == 0 {
			l.owed = ms
		}
		_, n := unflushed(slots)
		wait := l.owed + lazyWait(r, max(headroom, 0), q.options.Interval.Milliseconds()) - ms
		if s.matters(h, n, headroom) {
			wait = min(wait, l.owed+minSpacing-ms)
		}
		return need{act: wait <= 0, state: lazy, wait: wait}
	}
	l.owed = 0
	if held == 0 {
		return need{}
	}
	wait := present + r.frame - ms
	if s.matters(h, held, headroom) {
		idle := l.used + max(4*g.trip.Load(), min(r.frame/4, 1000)) - ms
		wait = min(wait, idle)
	}
	return need{act: wait <= 0, state: watching, wait: wait}
}

// nextLease is nextState for a strict counter.
func (s *shard) nextLease(num uint32, r *rule, ms int64, q *queue) (state, int64) {
	if wait, pending := s.retry(num, &q.options); pending {
		return urgent, wait
	}
	n := s.needs(num, r, ms, q)
	if n.act {
		return urgent, 0
	}
	return n.state, max(n.wait, 1)
}

// leaseUrgency is urgency for a strict counter.
func (s *shard) leaseUrgency(num uint32, r *rule) state {
	switch slots := s.slots(s.hotOf(num), r); {
	case s.demand(num) > 0:
		return urgent
	case dirty(slots):
		return lazy
	case s.holds(num):
		return watching
	default:
		return quiet
	}
}

// early is how many milliseconds before its planned time an exchange may begin.
const early = 3

// beginLease makes the pending write of a strict counter, unless it has one. write reports that
// there is a write to send, rest that no exchange is needed now.
func (s *shard) beginLease(num uint32, r *rule, ms, seq int64, q *queue) (write, rest bool) {
	s.serve(s.firstOf(num), ms)
	h, l := s.hotOf(num), s.leaseOf(num)
	l.began = ms
	if seq == 0 {
		return false, false
	}
	if s.pendingSeq(num) != 0 {
		if h.flags.has(readFirst) || s.leasePending(num) && !s.canLease(num) {
			return false, false
		}
		if s.makePending(num, r, seq) {
			return true, false
		}
		l.asked = 0
	}
	n := s.needs(num, r, ms, q)
	if !n.act && (n.state != lazy || n.wait > early) {
		return false, true
	}
	if !s.canLease(num) {
		return false, false
	}
	return s.ask(num, r, ms, seq, q.final.Load()), false
}

// ask makes a pending write that takes and gives back permits. It returns false if there is nothing
// to write.
func (s *shard) ask(num uint32, r *rule, ms, seq int64, final bool) bool {
	h, l := s.hotOf(num), s.leaseOf(num)
	slots := s.slots(h, r)
	t, n := 0, int64(0)
	if !final {
		t, n = s.amount(num, r, ms)
	}
	if final || s.demand(num) == 0 {
		for j := range l.held {
			slots[j].count(-l.held[j])
			l.held[j] = 0
		}
	}
	l.asking, l.unmet, l.owed = l.unmet, 0, 0
	if n == 0 && !dirty(slots) && !s.chores[num].converts(r.Requests-s.frames(num, r).whole) {
		return false
	}
	for j := range slots {
		slots[j].pending, slots[j].unclaimed = slots[j].unclaimed, 0
	}
	slots[t].pending += int32(n)
	l.asked, l.frame, l.seq = n, h.start-int64(t)*r.frame, seq
	s.extrasOf(num).seq = seq
	return true
}

// amount returns how many permits to request, and the slot of their frame. The known counts belong
// to the version that the write is conditional on, so if the write is applied, the computed room is
// still free.
func (s *shard) amount(num uint32, r *rule, ms int64) (t int, n int64) {
	h, l, g := s.hotOf(num), s.leaseOf(num), &s.all.leasing
	t = g.target(r, h.start-r.frame, ms)
	free := r.Requests
	slots := s.slots(h, r)
	for j := range slots {
		if j <= t+r.Frames { // one window can touch both this frame and the frame of the permits
			free -= slots[j].total(1)
		}
	}
	n = min(s.demand(num)-l.held[t], free)
	if n <= 0 || g.shut(r, ms) {
		return t, 0
	}
	rest := float64(r.frame)
	if t == 1 {
		rest = float64(max(h.start-ms, 0))
	}
	soon := int64(max(l.rate, float64(l.arrived))*rest/float64(r.frame)) - n
	share := (free - n) / (2 * int64(s.all.outage.instances.Load()))
	return t, n + max(min(soon, share), 0)
}

// canLease reports whether a write can be conditional on the document version of the known counts.
// A counter that was never read assumes that it has no document.
func (s *shard) canLease(num uint32) bool {
	h, c := s.hotOf(num), s.coldOf(num)
	if h.flags.has(unsynced) {
		return c.version == 0 && c.etagValue() == 0
	}
	_, known := s.chores[num].versionOf(c)
	return known && !h.flags.has(stale)
}

// versionLease makes a write of a strict counter conditional on the version. This includes writes
// that only give permits back, so that they never lower a document other than the one that counts
// the permits. While other processes are alive, the same exchange also reads the document.
func (s *shard) versionLease(num uint32, task *Task) {
	if !s.leasePending(num) {
		return
	}
	c := s.coldOf(num)
	task.Versioned = true
	task.Version, _ = s.chores[num].versionOf(c)
	task.Etag = c.etagValue()
	task.Read = task.Read || s.all.outage.instances.Load() > 1
}

// judgeLease is judge for a strict counter. Every attempt is conditional on a version. So once the
// document has another version and not the write, the write can no longer be applied.
func (s *shard) judgeLease(num uint32, task *Task, res Result) (v verdict) {
	v.seq = s.pendingSeq(num)
	d := res.Document
	if d == nil {
		d = &Document{}
	}
	c, e := s.coldOf(num), s.extrasOf(num)
	v.clone = res.Read && d.Mine > v.seq
	if res.Status == Applied && task.Seq != 0 {
		v.included = res.Read && d.Version > task.Version
		v.appliedAfter = !v.included
		return v
	}
	version, _ := s.chores[num].versionOf(c)
	switch unsure := e.uncertain || task.Seq != 0 && res.Status == Unknown; {
	case !unsure:
		v.void = task.Seq != 0
	case !res.Read:
	case d.Mine == v.seq:
		v.included = true
	case v.clone, d.Pruned >= v.seq:
		v.void, v.unclear = true, true
	default:
		v.void = d.Version != version || d.Etag != c.etagValue()
	}
	return v
}

// voidLease ends a pending write of a strict counter that was not applied. The requests that it
// asked permits for still lack them.
func (s *shard) voidLease(num uint32, r *rule, res Result, unclear bool) {
	s.dropPending(num, r, unclear)
	l := s.leaseOf(num)
	l.unmet = min(l.unmet+l.asking, r.Requests)
	if !res.Read {
		s.hotOf(num).flags |= stale
	}
}

// dropPending ends a pending write. Permits that it would have given back are still to be given
// back. If it is unclear whether it gave them back, they stay counted.
func (s *shard) dropPending(num uint32, r *rule, unclear bool) {
	l := s.leaseOf(num)
	slots := s.slots(s.hotOf(num), r)
	if j := s.askedIn(num, r); l.asked > 0 && j < len(slots) {
		slots[j].pending -= int32(l.asked) //nolint:gosec // at most MaxRequests
	}
	for j := range slots {
		if p := int64(slots[j].pending); p > 0 || !unclear {
			slots[j].count(p)
		}
		slots[j].pending = 0
	}
	l.asked = 0
	s.endPending(num)
}

// finishLease adds the permits that the pending write has taken to the counter and serves the
// waiting requests. If the frame of the permits is over, it gives them back.
func (s *shard) finishLease(num uint32, r *rule, ms int64, task *Task, res Result, v verdict) {
	l, g := s.leaseOf(num), &s.all.leasing
	if task.Seq != 0 && res.Status != Unknown && l.began != 0 { // 0: the lease was created after the exchange began
		trip := g.trip.Load()
		g.trip.Store(min(max(trip+(ms-l.began-trip)/4, 1), maxTrip))
	}
	if res.Read {
		s.checkWritten(num, r, res.Document)
	}
	if v.included || v.appliedAfter {
		l.written = v.seq
		slots := s.slots(s.hotOf(num), r)
		switch j := s.askedIn(num, r); {
		case j < len(l.held):
			l.held[j] += l.asked
		case j < len(slots):
			slots[j].count(-l.asked)
		}
		l.asked, l.conflicts, l.after = 0, 0, 0
	}
	if v.void && task.Seq != 0 {
		l.conflicts++
		if past := l.conflicts - freeConflicts; past > 0 { // sequences have random low bits
			l.after = ms + 1 + task.Seq%(g.trip.Load()*min(int64(past), 4)+1)
		}
	}
	s.serve(s.firstOf(num), ms)
}

// maxTrip bounds the duration of an exchange for which permits are requested ahead, in
// milliseconds.
const maxTrip = 100

// checkWritten disowns the permits of a counter if its document does not have the write that took
// them. Another document has then replaced the one with the write.
func (s *shard) checkWritten(num uint32, r *rule, d *Document) {
	l, mine := s.leaseOf(num), int64(0)
	if d != nil {
		mine = d.Mine
	}
	if mine < l.written {
		s.disown(num, r)
		l.written = mine
	}
}
