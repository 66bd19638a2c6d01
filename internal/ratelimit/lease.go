package ratelimit

import (
	"sync/atomic"
	"time"
)

// A strict limit admits from permits alone. A permit is one request of one frame: the document
// counts it before it is used, it is used in its frame or never, and it is counted until its frame
// has left every window. So in any window at most as many requests are admitted as the frames count
// that it touches, and a write that takes permits depends on the version of the document that had
// room for them.

// lease is what a process has of a strict counter besides its slots.
type lease struct {
	held    [2]int64 // unused permits of the next frame and of the present one, as the slots 0 and 1
	asked   int64    // permits that the pending write takes; part of the slot's pending
	frame   int64    // start of their frame
	seq     int64    // of the latest write that depends on a version, pending or not
	written int64    // the highest sequence of this process that the document is known to have
	ahead   bool     // the document has frames later than the newest slot
	unmet   int64    // requests denied for want of permits that no write asks for yet
	asking  int64    // those that the pending write asks for
	arrived int64    // requests in the present frame that had room under the limit
	rate    float64  // the same per frame, smoothed over earlier frames

	conflicts int   // writes in a row that other processes were ahead of
	after     int64 // no permits are asked for before, because of conflicts
	began     int64 // when the latest exchange began
	used      int64 // when the latest request came
	owed      int64 // when permits were first found to be given back; 0: none are
}

// leasing is what the leases of all counters have in common.
type leasing struct {
	on      bool        // a syncer exists; without one, counts are those of this process alone
	lost    atomic.Bool // the store does not answer
	closing atomic.Bool // the process stops
	// unsure is how far the time may be off that of the store: a tick, and in the lower half the
	// milliseconds then, plus 1; 0: not known.
	unsure atomic.Uint64
	trip   atomic.Int64 // smoothed time of an exchange, milliseconds
}

// clockDrift is one part in so many by which a monotonic clock may drift: 500 ppm, which is what
// kernels slew a clock by at most.
const clockDrift = 2000

// unknownTime is an uncertainty with which no permit is ever used.
const unknownTime = int64(MaxWindow / time.Millisecond)

// SetUncertainty sets how far the times that are passed in may be off the time of the store, at
// now. It grows by what clocks drift until it is set again. Strict limits admit nothing before.
func (y *Sync) SetUncertainty(now time.Time, u time.Duration) {
	off := (min(max(u, 0), MaxWindow) + time.Millisecond - 1).Milliseconds()
	y.c.all.leasing.unsure.Store(uint64(tick(millis(now)))<<32 | uint64(off+1)) //nolint:gosec // not negative
}

// SetLost sets whether the store has stopped answering: requests under strict limits are then
// denied without waiting for permits.
func (y *Sync) SetLost(lost bool) { y.c.all.leasing.lost.Store(lost) }

// uncertainty returns how far ms may be off the time of the store, in milliseconds.
func (g *leasing) uncertainty(ms int64) int64 {
	u := g.unsure.Load()
	if u == 0 {
		return unknownTime
	}
	return int64(u&(1<<32-1)) + ticksAgo(ms, uint32(u>>32))/clockDrift
}

// shut reports whether no permit can be asked for and used.
func (g *leasing) shut(r *rule, ms int64) bool {
	return g.lost.Load() || 2*g.uncertainty(ms)+1 >= r.frame
}

// usable reports whether ms is certainly inside the frame.
func (g *leasing) usable(r *rule, frame, ms int64) bool {
	u := g.uncertainty(ms)
	return frame <= ms-u && ms+1+u <= frame+r.frame
}

// target returns the slot of the frame to ask permits for: the next one if the present one would be
// over when they arrive.
func (g *leasing) target(r *rule, present, ms int64) int {
	if ms+g.trip.Load()+1+g.uncertainty(ms) <= present+r.frame {
		return 1
	}
	return 0
}

// leased reports whether requests of a counter need permits.
func (s *shard) leased(num uint32, r *rule) bool {
	return r.leases && s.all.leasing.on && !s.hotOf(num).flags.has(pooled)
}

// leaseOf returns the lease of a counter.
func (s *shard) leaseOf(num uint32) *lease {
	l := s.leases[num]
	if l == nil {
		if s.leases == nil {
			s.leases = map[uint32]*lease{}
		}
		l = &lease{}
		s.leases[num] = l
	}
	return l
}

// viewStrict completes view for a strict limit: permits that this process has, or is about to get,
// are not used up. In dry-run there are none, and it is as if they came at once, where they could.
func (s *shard) viewStrict(f *frames, num uint32, r *rule, ms int64, d *Decision) {
	g := &s.all.leasing
	switch {
	case !g.on:
		return
	case s.hotOf(num).flags.has(pooled), !r.leases && g.shut(r, ms): // a pooled counter has no document
		f.instances, d.Outage = 0, true
		return
	case !r.leases:
		return
	}
	l := s.leaseOf(num)
	f.lease = l
	f.whole -= l.held[0] + l.held[1]
	if l.asked > 0 && f.start-l.frame < int64(len(f.slots))*r.frame {
		f.whole -= l.asked
	}
	if g.usable(r, f.start-r.frame, ms) {
		f.usable = max(l.held[1]-s.queued(num), 0) // the others are for those that wait
	}
	if f.usable == 0 && g.shut(r, ms) {
		f.instances, d.Outage = 0, true
	}
}

// useLease takes n permits of the present frame.
func (f *frames) useLease(n int64) {
	f.lease.held[1] -= n
	f.usable -= n
	f.whole += n
}

// full reports whether n more requests do not fit under the limit, whoever has the permits.
func (f *frames) full(r *rule, n int64) bool {
	if f.lease == nil || f.instances == 0 {
		return !f.admits(r, n)
	}
	return n > r.Requests-f.used
}

// freshFor returns how old the known counts of a strict counter may be, in milliseconds, to deny a
// request by them: others may have given permits back since.
func freshFor(r *rule) int64 { return min(max(r.frame/2, maxSpacing), maxWatch) }

// aged reports whether the known counts are too old to deny a request by them.
func (s *shard) aged(num uint32, r *rule, ms int64) bool {
	return s.hotOf(num).flags.has(unsynced|stale) || ticksAgo(ms, s.coldOf(num).synced) > freshFor(r)
}

// lacking returns how long n requests may wait that are denied for nothing but permits which an
// exchange can bring, to them and to those ahead; 0 if they are denied for anything else.
func (o *side) lacking(ms, n int64, behind bool) (longest time.Duration) {
	s := o.s
	if s.all.leasing.closing.Load() {
		return 0
	}
	longest = MinLeaseWait
	for num, r := range o.applied() {
		var f frames
		var d Decision
		var ahead int64
		if behind {
			ahead = s.queued(num)
		}
		s.view(&f, num, r, ms, &d)
		if !f.admits(r, n) {
			if f.lease == nil || f.instances == 0 || ahead+n > r.Requests || f.full(r, ahead+n) && !s.aged(num, r, ms) {
				return 0
			}
			longest = max(longest, r.LeaseWait)
		}
	}
	return longest
}

// arrive records n requests that had room.
func (o *side) arrive(ms, n int64) {
	for num, r := range o.applied() {
		if o.s.leased(num, r) {
			l := o.s.leaseOf(num)
			l.arrived, l.used = l.arrived+n, ms
		}
	}
}

// addUnmet records n requests that were denied for want of permits, so that the next ones find some.
func (o *side) addUnmet(n int64) {
	for num, r := range o.applied() {
		if o.s.leased(num, r) {
			l := o.s.leaseOf(num)
			l.unmet = min(l.unmet+n, r.Requests)
		}
	}
}

// shiftLease moves the permits of a counter n frames on, before its slots move. Those of frames that
// are over are given back.
func (s *shard) shiftLease(num uint32, slots []slot, n int) {
	l := s.leases[num]
	if l == nil {
		return
	}
	slots[1].count(-l.held[1])
	l.held[1], l.held[0] = l.held[0], 0
	if n > 1 {
		slots[0].count(-l.held[1])
		l.held[1] = 0
	}
	l.rate = (l.rate + float64(l.arrived)) / 2
	for ; n > 1 && l.rate > 0.01; n-- {
		l.rate /= 2
	}
	l.arrived = 0
	if l.ahead { // counts of later frames were taken for counts of the one that is no longer the newest
		s.hotOf(num).flags |= stale
	}
}

// forgoLease drops what a strict counter has besides its known counts, because its frames change:
// unused permits and the pending write stay counted.
func (s *shard) forgoLease(num uint32, r *rule) {
	if s.leases[num] == nil {
		return
	}
	if s.leasePending(num) {
		s.dropPending(num, r, true)
	}
	s.disown(num, r)
	slots := s.slots(s.hotOf(num), r)
	for j := range slots {
		slots[j].pending = max(slots[j].pending, 0)
	}
	delete(s.leases, num)
}

// recall gives back the permits of a counter that are unused, and those under way when they arrive.
func (s *shard) recall(num uint32, r *rule) {
	l := s.leases[num]
	if l == nil {
		return
	}
	slots := s.slots(s.hotOf(num), r)
	for j := range l.held {
		slots[j].count(-l.held[j])
		l.held[j] = 0
	}
	if j := s.askedIn(num, r); l.asked > 0 && j < len(slots) {
		slots[j].count(-l.asked)
	}
	l.asked = 0
}

// disown drops the unused permits of a counter, and those to be given back: its document does not
// have the write that took them, or they are of no frame of it. They stay counted here.
func (s *shard) disown(num uint32, r *rule) {
	s.leases[num].held = [2]int64{}
	slots := s.slots(s.hotOf(num), r)
	for j := range slots {
		slots[j].unclaimed = max(slots[j].unclaimed, 0)
	}
}

// askedIn returns the slot of the permits that the pending write takes.
func (s *shard) askedIn(num uint32, r *rule) int {
	return int((s.hotOf(num).start - s.leases[num].frame) / r.frame)
}

// leasePending reports whether the pending write of a counter is one of those that depend on a
// version. One from before its limit was strict does not.
func (s *shard) leasePending(num uint32) bool {
	l, seq := s.leases[num], s.pendingSeq(num)
	return l != nil && seq != 0 && l.seq == seq
}

// admitted returns the requests of a counter that the document is not known to have.
func (s *shard) admitted(num uint32, slots []slot) int64 {
	pending, unclaimed := unflushed(slots)
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
