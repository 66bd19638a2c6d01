package counting

import (
	"sync/atomic"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/slab"
)

// A strict limit admits only from permits. A permit is one request in one frame. The document
// counts it before it is used, it is used only in its frame, and it stays counted until its frame
// has left every window. So the requests admitted in any window never exceed the counts of the
// frames that overlap it. A write that takes permits is conditional on the version of the document
// that had room for them.

// lease is the state of a strict counter in this process, in addition to its slots.
type lease struct {
	held    [2]int64 // unused permits of the next frame and of the present one, as in slots 0 and 1
	asked   int64    // permits that the pending write takes; included in the slot's pending
	frame   int64    // start of the frame of asked
	seq     int64    // sequence of the latest conditional write, pending or not
	written int64    // highest sequence of this process that the document is known to have
	ahead   bool     // the document has frames later than the newest slot
	unmet   int64    // requests denied for lack of permits that no write asks for yet
	asking  int64    // the part of unmet that the pending write asks for
	arrived int64    // requests in the present frame that had room under the limit
	rate    float64  // arrived per frame, smoothed over earlier frames

	conflicts int   // successive writes that conflicted with other processes
	after     int64 // no permits are requested before this time, because of conflicts
	began     int64 // when the latest exchange began
	used      int64 // when the latest request arrived
	owed      int64 // since when permits are to be given back; 0: none are
}

// leasing is the state that the leases of all counters share.
type leasing struct {
	on      bool        // a syncer exists; otherwise this process counts alone
	lost    atomic.Bool // the store does not respond
	closing atomic.Bool // the process is stopping
	// unsure is the uncertainty of the time against the time of the store. The upper half is the
	// tick of the measurement, the lower half the milliseconds at that tick, plus 1. 0 means
	// unknown.
	unsure atomic.Uint64
	trip   atomic.Int64 // smoothed duration of an exchange, milliseconds
}

// clockDrift bounds the drift of a monotonic clock to one part in clockDrift: 500 ppm, the most by
// which kernels slew a clock.
const clockDrift = 2000

// unknownTime is an uncertainty so large that no permit can be used.
const unknownTime = int64(ratelimit.MaxWindow / time.Millisecond)

// SetUncertainty sets, as of now, how far the times passed in may differ from the time of the
// store. The value grows by the clock drift until it is set again. Strict limits admit nothing
// until it is first set.
func (y *Sync) SetUncertainty(now time.Time, u time.Duration) {
	off := (min(max(u, 0), ratelimit.MaxWindow) + time.Millisecond - 1).Milliseconds()
	y.c.all.leasing.unsure.Store(uint64(slab.Tick(ratelimit.Millis(now)))<<32 | uint64(off+1)) //nolint:gosec // not negative
}

// SetLost sets whether the store has stopped responding. If it has, requests under strict limits
// are denied without waiting for permits.
func (y *Sync) SetLost(lost bool) { y.c.all.leasing.lost.Store(lost) }

// uncertainty returns how far ms may differ from the time of the store, in milliseconds.
func (g *leasing) uncertainty(ms int64) int64 {
	u := g.unsure.Load()
	if u == 0 {
		return unknownTime
	}
	return int64(u&(1<<32-1)) + slab.TicksAgo(ms, uint32(u>>32))/clockDrift
}

// shut reports whether permits can be neither requested nor used.
func (g *leasing) shut(r *ratelimit.Rule, ms int64) bool {
	return g.lost.Load() || 2*g.uncertainty(ms)+1 >= r.FrameMS
}

// usable reports whether ms is certainly inside the frame.
func (g *leasing) usable(r *ratelimit.Rule, frame, ms int64) bool {
	u := g.uncertainty(ms)
	return frame <= ms-u && ms+1+u <= frame+r.FrameMS
}

// target returns the slot of the frame to request permits for. This is the next frame if the
// present one would be over when the permits arrive.
func (g *leasing) target(r *ratelimit.Rule, present, ms int64) int {
	if ms+g.trip.Load()+1+g.uncertainty(ms) <= present+r.FrameMS {
		return 1
	}
	return 0
}

// leased reports whether requests of a counter need permits.
func (s *shard) leased(num uint32, r *ratelimit.Rule) bool {
	return r.Leases && s.all.leasing.on && !s.HotOf(num).Flags.Has(slab.Pooled)
}

// leaseOf returns the lease of a counter.
func (s *shard) leaseOf(num uint32) *lease {
	l := s.leases[num]
	if l == nil {
		l = &lease{}
		put(&s.leases, num, l)
	}
	return l
}

// viewStrict completes view for a strict limit. Permits that this process holds, or is about to
// get, do not count as used. Dry-run takes no permits and decides as if they arrived at once,
// whenever they could arrive.
func (s *shard) viewStrict(f *ratelimit.Frames, num uint32, r *ratelimit.Rule, ms int64, d *ratelimit.Decision) {
	g := &s.all.leasing
	switch {
	case !g.on:
		return
	case s.HotOf(num).Flags.Has(slab.Pooled), !r.Leases && g.shut(r, ms): // a pooled counter has no document
		f.Instances, d.Outage = 0, true
		return
	case !r.Leases:
		return
	}
	l := s.leaseOf(num)
	f.Permits = &l.held[1]
	f.Whole -= l.held[0] + l.held[1]
	if l.asked > 0 && f.Start-l.frame < int64(len(f.Slots))*r.FrameMS {
		f.Whole -= l.asked
	}
	if g.usable(r, f.Start-r.FrameMS, ms) {
		f.Usable = max(l.held[1]-s.queued(num), 0) // the rest is for waiting requests
	}
	if f.Usable == 0 && g.shut(r, ms) {
		f.Instances, d.Outage = 0, true
	}
}

// aged reports whether the known counts are too old to deny a request: they may miss permits that
// other processes have given back.
func (s *shard) aged(num uint32, r *ratelimit.Rule, ms int64) bool {
	return s.HotOf(num).Flags.Has(slab.Unsynced|slab.Stale) || slab.TicksAgo(ms, s.ColdOf(num).Synced) > min(max(r.FrameMS/2, ratelimit.MaxSpacing), ratelimit.MaxWatch)
}

// lacking returns how long n requests may wait if they lack only permits that an exchange can
// bring. With behind, it must bring enough for the requests ahead of them too. It returns 0 if they
// are denied for any other reason.
func (p *part) lacking(ms, n int64, behind bool) (longest time.Duration) {
	s := p.s
	if s.all.leasing.closing.Load() {
		return 0
	}
	longest = ratelimit.MinLeaseWait
	for num, r := range p.applied() {
		var f ratelimit.Frames
		var d ratelimit.Decision
		var ahead int64
		if behind {
			ahead = s.queued(num)
		}
		s.view(&f, num, r, ms, &d)
		if !f.Admits(r, n) {
			if f.Permits == nil || f.Instances == 0 || ahead+n > r.Requests || f.Full(r, ahead+n) && !s.aged(num, r, ms) {
				return 0
			}
			longest = max(longest, r.LeaseWait)
		}
	}
	return longest
}

// arrive records n requests that had room.
func (p *part) arrive(ms, n int64) {
	for num, r := range p.applied() {
		if p.s.leased(num, r) {
			l := p.s.leaseOf(num)
			l.arrived, l.used = l.arrived+n, ms
		}
	}
}

// addUnmet records n requests that were denied for lack of permits, so that later requests get
// some.
func (p *part) addUnmet(n int64) {
	for num, r := range p.applied() {
		if p.s.leased(num, r) {
			l := p.s.leaseOf(num)
			l.unmet = min(l.unmet+n, r.Requests)
		}
	}
}

// shiftLease moves the permits of a counter forward by n frames, before its slots move. It gives
// back permits of frames that are over.
func (s *shard) shiftLease(num uint32, slots []ratelimit.Slot, n int) {
	l := s.leases[num]
	if l == nil {
		return
	}
	slots[1].Count(-l.held[1])
	l.held[1], l.held[0] = l.held[0], 0
	if n > 1 {
		slots[0].Count(-l.held[1])
		l.held[1] = 0
	}
	l.rate = (l.rate + float64(l.arrived)) / 2
	for ; n > 1 && l.rate > 0.01; n-- {
		l.rate /= 2
	}
	l.arrived = 0
	if l.ahead { // later frames were counted in the frame that is no longer the newest
		s.HotOf(num).Flags |= slab.Stale
	}
}

// forgoLease drops the lease of a strict counter because its frames change. Unused permits and the
// pending write stay counted.
func (s *shard) forgoLease(num uint32, r *ratelimit.Rule) {
	if s.leases[num] == nil {
		return
	}
	if s.leasePending(num) {
		s.dropPending(num, r, true)
	}
	s.disown(num, r)
	slots := s.Slots(s.HotOf(num), r)
	for j := range slots {
		slots[j].Pending = max(slots[j].Pending, 0)
	}
	delete(s.leases, num)
}

// recall gives back the unused permits of a counter, and the requested permits once they arrive.
func (s *shard) recall(num uint32, r *ratelimit.Rule) {
	l := s.leases[num]
	if l == nil {
		return
	}
	slots := s.Slots(s.HotOf(num), r)
	for j := range l.held {
		slots[j].Count(-l.held[j])
		l.held[j] = 0
	}
	if j := s.askedIn(num, r); l.asked > 0 && j < len(slots) {
		slots[j].Count(-l.asked)
	}
	l.asked = 0
}

// disown drops the unused permits of a counter, and the permits to be given back. Either its
// document does not have the write that took them, or their frame no longer exists. They stay
// counted here.
func (s *shard) disown(num uint32, r *ratelimit.Rule) {
	s.leases[num].held = [2]int64{}
	slots := s.Slots(s.HotOf(num), r)
	for j := range slots {
		slots[j].Unclaimed = max(slots[j].Unclaimed, 0)
	}
}

// askedIn returns the slot of the permits that the pending write takes.
func (s *shard) askedIn(num uint32, r *ratelimit.Rule) int {
	return int((s.HotOf(num).Start - s.leases[num].frame) / r.FrameMS)
}

// leasePending reports whether the pending write of a counter is conditional on a version. A write
// from before the limit became strict is not.
func (s *shard) leasePending(num uint32) bool {
	l, seq := s.leases[num], s.PendingSeq(num)
	return l != nil && seq != 0 && l.seq == seq
}

// admitted returns the requests of a counter that the document may not have.
func (s *shard) admitted(num uint32, slots []ratelimit.Slot) int64 {
	pending, unclaimed := ratelimit.SumUnflushed(slots)
	if l := s.leases[num]; l != nil {
		return max(pending+unclaimed-l.asked, 0) // permits are counted before they are used
	}
	return pending + unclaimed
}

// holds reports whether a counter has unused permits.
func (s *shard) holds(num uint32) bool {
	l := s.leases[num]
	return l != nil && l.held[0]+l.held[1] > 0
}

// need is the next step of a strict counter.
type need struct {
	act   bool       // start an exchange now
	state slab.State // otherwise: the state to wait in, or quiet
	wait  int64      // how long to wait, milliseconds
}

// needs returns the next step of a strict counter without a pending write.
func (s *shard) needs(num uint32, r *ratelimit.Rule, ms int64, q *queue) need {
	h, l := s.HotOf(num), s.leaseOf(num)
	slots, held := s.Slots(h, r), l.held[0]+l.held[1]
	owing := ratelimit.HasUnclaimed(slots)
	if q.final.Load() {
		return need{act: owing || held > 0}
	}
	present, g := h.Start-r.FrameMS, &s.all.leasing
	if w := s.demand(num); w > 0 && !g.shut(r, ms) {
		t := g.target(r, present, ms)
		switch from := h.Start - int64(t)*r.FrameMS + g.uncertainty(ms); {
		case w > l.held[t]:
			return need{act: l.after <= ms, state: slab.Urgent, wait: l.after - ms}
		case ms < from:
			return need{state: slab.Urgent, wait: from - ms}
		}
	}
	headroom := r.Requests - s.frames(num, r).Whole
	if owing {
		if l.owed == 0 {
			l.owed = ms
		}
		_, n := ratelimit.SumUnflushed(slots)
		wait := l.owed + r.LazyWait(max(headroom, 0), q.options.Interval.Milliseconds()) - ms
		if s.matters(h, n, headroom) {
			wait = min(wait, l.owed+ratelimit.MinSpacing-ms)
		}
		return need{act: wait <= 0, state: slab.Lazy, wait: wait}
	}
	l.owed = 0
	if held == 0 {
		return need{}
	}
	wait := present + r.FrameMS - ms
	if s.matters(h, held, headroom) {
		idle := l.used + max(4*g.trip.Load(), min(r.FrameMS/4, 1000)) - ms
		wait = min(wait, idle)
	}
	return need{act: wait <= 0, state: slab.Watching, wait: wait}
}

// nextLease is nextState for a strict counter.
func (s *shard) nextLease(num uint32, r *ratelimit.Rule, ms int64, q *queue) (slab.State, int64) {
	if wait, pending := s.retry(num, &q.options); pending {
		return slab.Urgent, wait
	}
	n := s.needs(num, r, ms, q)
	if n.act {
		return slab.Urgent, 0
	}
	return n.state, max(n.wait, 1)
}

// leaseUrgency is urgency for a strict counter.
func (s *shard) leaseUrgency(num uint32, r *ratelimit.Rule) slab.State {
	switch slots := s.Slots(s.HotOf(num), r); {
	case s.demand(num) > 0:
		return slab.Urgent
	case ratelimit.HasUnclaimed(slots):
		return slab.Lazy
	case s.holds(num):
		return slab.Watching
	default:
		return slab.Quiet
	}
}

// early is how many milliseconds before its planned time an exchange may begin.
const early = 3

// beginLease makes the pending write of a strict counter, unless it has one. write reports that
// there is a write to send, rest that no exchange is needed now.
func (s *shard) beginLease(num uint32, r *ratelimit.Rule, ms, seq int64, q *queue) (write, rest bool) {
	s.serve(s.FirstOf(num), ms)
	h, l := s.HotOf(num), s.leaseOf(num)
	l.began = ms
	if seq == 0 {
		return false, false
	}
	if s.PendingSeq(num) != 0 {
		if h.Flags.Has(slab.ReadFirst) || s.leasePending(num) && !s.canLease(num) {
			return false, false
		}
		if s.makePending(num, r, seq) {
			return true, false
		}
		l.asked = 0
	}
	n := s.needs(num, r, ms, q)
	if !n.act && (n.state != slab.Lazy || n.wait > early) {
		return false, true
	}
	if !s.canLease(num) {
		return false, false
	}
	return s.ask(num, r, ms, seq, q.final.Load()), false
}

// ask makes a pending write that takes and gives back permits. It returns false if there is nothing
// to write.
func (s *shard) ask(num uint32, r *ratelimit.Rule, ms, seq int64, final bool) bool {
	h, l := s.HotOf(num), s.leaseOf(num)
	slots := s.Slots(h, r)
	t, n := 0, int64(0)
	if !final {
		t, n = s.amount(num, r, ms)
	}
	if final || s.demand(num) == 0 {
		for j := range l.held {
			slots[j].Count(-l.held[j])
			l.held[j] = 0
		}
	}
	l.asking, l.unmet, l.owed = l.unmet, 0, 0
	if n == 0 && !ratelimit.HasUnclaimed(slots) && !s.repairs[num].converts(r.Requests-s.frames(num, r).Whole) {
		return false
	}
	for j := range slots {
		slots[j].Pending, slots[j].Unclaimed = slots[j].Unclaimed, 0
	}
	slots[t].Pending += int32(n)
	l.asked, l.frame, l.seq = n, h.Start-int64(t)*r.FrameMS, seq
	s.ExtrasOf(num).Seq = seq
	return true
}

// amount returns how many permits to request, and the slot of their frame. The known counts belong
// to the version that the write is conditional on, so if the write is applied, the computed room is
// still free.
func (s *shard) amount(num uint32, r *ratelimit.Rule, ms int64) (t int, n int64) {
	h, l, g := s.HotOf(num), s.leaseOf(num), &s.all.leasing
	t = g.target(r, h.Start-r.FrameMS, ms)
	free := r.Requests
	slots := s.Slots(h, r)
	for j := range slots {
		if j <= t+r.Frames { // one window can touch both this frame and the frame of the permits
			free -= slots[j].Total(1)
		}
	}
	n = min(s.demand(num)-l.held[t], free)
	if n <= 0 || g.shut(r, ms) {
		return t, 0
	}
	rest := float64(r.FrameMS)
	if t == 1 {
		rest = float64(max(h.Start-ms, 0))
	}
	soon := int64(max(l.rate, float64(l.arrived))*rest/float64(r.FrameMS)) - n
	share := (free - n) / (2 * int64(s.all.outage.instances.Load()))
	return t, n + max(min(soon, share), 0)
}

// canLease reports whether a write can be conditional on the document version of the known counts.
// A counter that was never read assumes that it has no document.
func (s *shard) canLease(num uint32) bool {
	h, c := s.HotOf(num), s.ColdOf(num)
	if h.Flags.Has(slab.Unsynced) {
		return c.Version == 0 && c.EtagValue() == 0
	}
	_, known := s.repairs[num].versionOf(c)
	return known && !h.Flags.Has(slab.Stale)
}

// versionLease makes a write of a strict counter conditional on the version. This includes writes
// that only give permits back, so that they never lower a document other than the one that counts
// the permits. While other processes are alive, the same exchange also reads the document.
func (s *shard) versionLease(num uint32, task *Task) {
	if !s.leasePending(num) {
		return
	}
	c := s.ColdOf(num)
	task.Versioned = true
	task.Version, _ = s.repairs[num].versionOf(c)
	task.Etag = c.EtagValue()
	task.Read = task.Read || s.all.outage.instances.Load() > 1
}

// leaseVerdict is verdict for a strict counter. Every attempt is conditional on a version. So once the
// document has another version and not the write, the write can no longer be applied.
func (s *shard) leaseVerdict(num uint32, task *Task, res Result) (v verdict) {
	v.seq = s.PendingSeq(num)
	d := res.Document
	if d == nil {
		d = &ratelimit.Document{}
	}
	c, e := s.ColdOf(num), s.ExtrasOf(num)
	v.clone = res.Read && d.Mine > v.seq
	if res.Status == Applied && task.Seq != 0 {
		v.included = res.Read && d.Version > task.Version
		v.appliedAfter = !v.included
		return v
	}
	version, _ := s.repairs[num].versionOf(c)
	switch unsure := e.Uncertain || task.Seq != 0 && res.Status == Unknown; {
	case !unsure:
		v.void = task.Seq != 0
	case !res.Read:
	case d.Mine == v.seq:
		v.included = true
	case v.clone, d.Pruned >= v.seq:
		v.void, v.unclear = true, true
	default:
		v.void = d.Version != version || d.Etag != c.EtagValue()
	}
	return v
}

// voidLease ends a pending write of a strict counter that was not applied. The requests that it
// asked permits for still lack them.
func (s *shard) voidLease(num uint32, r *ratelimit.Rule, res Result, unclear bool) {
	s.dropPending(num, r, unclear)
	l := s.leaseOf(num)
	l.unmet = min(l.unmet+l.asking, r.Requests)
	if !res.Read {
		s.HotOf(num).Flags |= slab.Stale
	}
}

// dropPending ends a pending write. Permits that it would have given back are still to be given
// back. If it is unclear whether it gave them back, they stay counted.
func (s *shard) dropPending(num uint32, r *ratelimit.Rule, unclear bool) {
	l := s.leaseOf(num)
	slots := s.Slots(s.HotOf(num), r)
	if j := s.askedIn(num, r); l.asked > 0 && j < len(slots) {
		slots[j].Pending -= int32(l.asked) //nolint:gosec // at most MaxRequests
	}
	for j := range slots {
		if p := int64(slots[j].Pending); p > 0 || !unclear {
			slots[j].Count(p)
		}
		slots[j].Pending = 0
	}
	l.asked = 0
	s.endPending(num)
}

// finishLease adds the permits that the pending write has taken to the counter and serves the
// waiting requests. If the frame of the permits is over, it gives them back.
func (s *shard) finishLease(num uint32, r *ratelimit.Rule, ms int64, task *Task, res Result, v verdict) {
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
		slots := s.Slots(s.HotOf(num), r)
		switch j := s.askedIn(num, r); {
		case j < len(l.held):
			l.held[j] += l.asked
		case j < len(slots):
			slots[j].Count(-l.asked)
		}
		l.asked, l.conflicts, l.after = 0, 0, 0
	}
	if v.void && task.Seq != 0 {
		l.conflicts++
		if past := l.conflicts - freeConflicts; past > 0 { // sequences have random low bits
			l.after = ms + 1 + task.Seq%(g.trip.Load()*min(int64(past), 4)+1)
		}
	}
	s.serve(s.FirstOf(num), ms)
}

// maxTrip bounds the duration of an exchange for which permits are requested ahead, in
// milliseconds.
const maxTrip = 100

// checkWritten disowns the permits of a counter if its document does not have the write that took
// them. Another document has then replaced the one with the write.
func (s *shard) checkWritten(num uint32, r *ratelimit.Rule, d *ratelimit.Document) {
	l, mine := s.leaseOf(num), int64(0)
	if d != nil {
		mine = d.Mine
	}
	if mine < l.written {
		s.disown(num, r)
		l.written = mine
	}
}
