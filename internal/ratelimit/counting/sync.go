package counting

import (
	"sync/atomic"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/slab"
)

// Sync is the interface of [Counters] for internal/syncer. It returns which counters are due and
// the task of each exchange, and takes the outcome. Its methods are safe for concurrent use, except
// that only one goroutine may call Due.
type Sync struct {
	c *Counters
}

// SyncOptions configures how often counters are exchanged.
type SyncOptions struct {
	Interval   time.Duration // flush interval: how long counts that are not due wait, see [ratelimit.Rule.LazyWait]
	MaxBackoff time.Duration // longest wait of a counter with a failing write
	// Clock is read again under the lock of a key with a strict limit, because the frame of the
	// time passed in may be over. Nil: the time passed in is used.
	Clock func() time.Time
	// Wake is called when a counter has become urgent. It may be called under a lock, so it must
	// not block. Nil: no call.
	Wake func()
}

// Sync attaches a syncer to the counters. It must be called before the first Take. Without a
// syncer, counts stay in this process.
func (c *Counters) Sync(o SyncOptions) *Sync {
	c.queue.options, c.queue.attached, c.all.leasing.on = o, true, true
	return &Sync{c: c}
}

// SetInstances sets how many processes are alive, including this one. All of them are assumed to
// hold back counts of a key if its document does not show its writers.
func (y *Sync) SetInstances(n int) {
	y.c.all.outage.instances.Store(int32(min(max(n, 1), 10_000)))
}

// Stalled begins an outage: counts cannot be shared, and limits are decided by their OnOutage.
func (y *Sync) Stalled() { y.c.all.outage.mode.Store(stalled) }

// Recovering ends an outage for each counter at its next exchange. Until then, or until
// [Sync.Recovered], the OnOutage of its limit still decides.
func (y *Sync) Recovering(now time.Time) {
	if y.c.all.outage.mode.Load() == stalled {
		y.c.all.outage.ended.Store(slab.Tick(ratelimit.Millis(now)))
		y.c.all.outage.mode.Store(recovering)
	}
}

// Recovered ends an outage for all counters, unless another one has begun.
func (y *Sync) Recovered() { y.c.all.outage.mode.CompareAndSwap(recovering, sharing) }

// SetFinal stops planning reads. Call it when the process stops and only unflushed counts matter.
func (y *Sync) SetFinal() {
	y.c.queue.final.Store(true)
	y.c.all.leasing.closing.Store(true)
}

// Ticket permits one [Sync.Begin] of a counter. Only the latest ticket of a counter is valid, so a
// counter that is planned again is not begun twice.
type Ticket struct {
	shard, num uint32
	number     uint16
}

// Counter returns a number that identifies the counter among those in memory.
func (t Ticket) Counter() uint64 { return uint64(t.shard)<<32 | uint64(t.num) }

// Plan says when to exchange a counter next.
type Plan struct {
	Ticket
	In       time.Duration // earliest start, from now
	Lazy     bool          // writes counts that may wait a little longer to share an exchange with others
	Watching bool          // only reads, and may also wait a little longer
	Lease    bool          // of a strict limit: requests may be waiting for it
}

// Due appends to dst a plan for each counter that has become more urgent since the last call, and
// returns the extended slice.
func (y *Sync) Due(now time.Time, dst []Plan) []Plan {
	ms := ratelimit.Millis(now)
	y.c.collect(func(s *shard, num uint32) {
		if st := s.HotOf(num).State; st > slab.Quiet && st < slab.Busy {
			if p, ok := y.plan(s, num, ms); ok {
				dst = append(dst, p)
			}
		}
	})
	return dst
}

// plan sets the state of a counter and returns the plan for its next exchange, or false if it needs
// none. The lock of the shard must be held.
func (y *Sync) plan(s *shard, num uint32, ms int64) (Plan, bool) {
	r := s.RuleOf(num)
	s.advance(num, r, ms)
	st, wait := s.nextState(num, r, ms, &y.c.queue)
	s.HotOf(num).State = st
	if st == slab.Quiet {
		return Plan{}, false
	}
	return y.planned(s, num, time.Duration(wait)*time.Millisecond, st), true
}

// planned returns a plan with a new ticket.
func (y *Sync) planned(s *shard, num uint32, in time.Duration, st slab.State) Plan {
	c := s.ColdOf(num)
	c.Ticket++
	return Plan{
		Ticket: Ticket{shard: s.number, num: num, number: c.Ticket}, In: in,
		Lazy: st == slab.Lazy, Watching: st == slab.Watching,
		Lease: s.leased(num, s.RuleOf(num)) && !y.c.queue.final.Load(),
	}
}

// Of returns plans to exchange the counters of a key at once. It omits counters that are busy or
// not in memory.
func (y *Sync) Of(k ratelimit.Key) (plans []Plan) {
	s, h := y.c.lookup(k.Bounded())
	s.mu.Lock()
	defer s.mu.Unlock()
	nums, n := s.ChainOf(s.Find(h))
	for _, num := range nums[:n] {
		if s.HotOf(num).State != slab.Busy {
			s.HotOf(num).State = slab.Urgent
			plans = append(plans, y.planned(s, num, 0, slab.Urgent))
		}
	}
	return plans
}

// Unflushed sums the counts of all counters that the store has not confirmed.
type Unflushed struct {
	Counters int   // with unconfirmed counts
	Requests int64 // admitted, less those given back
}

// Unflushed returns the counts that the store has not confirmed. If plan is not nil, it is called
// with a plan for each counter that has any and is not busy.
func (y *Sync) Unflushed(now time.Time, plan func(Plan)) (u Unflushed) {
	ms := ratelimit.Millis(now)
	for i := range y.c.shards {
		s := &y.c.shards[i]
		s.mu.Lock()
		for num := uint32(1); num < s.Numbers; num++ {
			h := s.HotOf(num)
			if h.State == slab.Unused || h.Flags.Has(slab.Pooled) {
				continue
			}
			s.advance(num, s.RuleOf(num), ms)
			slots := s.SlotsOf(num)
			pending, unclaimed := ratelimit.SumUnflushed(slots)
			if pending == 0 && unclaimed == 0 && !ratelimit.HasUnclaimed(slots) && (!y.c.queue.final.Load() || !s.holds(num)) {
				continue
			}
			u.Counters++
			u.Requests += s.admitted(num, slots)
			if plan != nil && h.State != slab.Busy {
				if p, ok := y.plan(s, num, ms); ok {
					plan(p)
				}
			}
		}
		s.mu.Unlock()
	}
	return u
}

// Task is one exchange of a counter.
type Task struct {
	Ticket
	ID      ratelimit.CounterID
	Limit   ratelimit.Limit
	Age     time.Duration // of the known counts; 0 if none were read yet
	Read    bool          // the document must be read
	Lease   bool          // of a strict limit: requests may be waiting for it
	Pending int64         // sequence of the pending write, sent by this task or not; 0 for none
	Write
}

// Write is the write of a task. A zero Seq means that the task writes nothing. Package
// internal/syncer documents how a store executes a write.
type Write struct {
	Seq           int64
	Versioned     bool // conditional on Version and Etag; otherwise on Seq, Frame and Remove
	Version, Etag int64
	Frame         int64 // length of the frames, milliseconds
	Delta         []ratelimit.FrameCount
	Rewrite       bool // Delta replaces all frames of the document
	Remove        ratelimit.Removal
	Pruned        int64 // highest sequence of a writer in Remove that may write again; 0: none
	Expire        time.Time
}

// Begin makes the counter busy until [Sync.Finish] and returns the task of its exchange. It returns
// false if the ticket is no longer valid, or if no exchange is needed now. A new write gets the
// sequence seq, which must be larger than in all earlier calls. A repeated write keeps its own.
// With seq 0 the document is only read.
func (y *Sync) Begin(now time.Time, t Ticket, seq int64) (task Task, ok bool) {
	ms := ratelimit.Millis(now)
	s := &y.c.shards[t.shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.good(t) {
		return task, false
	}
	r := s.RuleOf(t.num)
	if r.Leases {
		ms = y.c.queue.present(ms)
	}
	s.advance(t.num, r, ms)
	write, rest := y.begins(s, t.num, r, ms, seq)
	if rest {
		return task, false
	}
	h, c := s.HotOf(t.num), s.ColdOf(t.num)
	k := s.Key(t.num)
	task = Task{Ticket: t, ID: ratelimit.CounterID{ClientID: k.ClientID, Username: k.Username, Limit: r.Doc}, Limit: r.Limit, Read: true, Lease: s.leased(t.num, r) && !y.c.queue.final.Load()}
	if !h.Flags.Has(slab.Unsynced) {
		task.Age = time.Duration(slab.TicksAgo(ms, c.Synced)) * time.Millisecond
	}
	if write {
		s.write(t.num, r, ms, y.c.queue.final.Load(), &task)
		s.versionLease(t.num, &task)
	}
	task.Pending = s.PendingSeq(t.num)
	c.Recent = uint8(min(recentAt(c, r, ms)+1, 255)) //nolint:gosec // a count of 255 at most
	h.State, c.Began = slab.Busy, slab.Tick(ms)
	return task, true
}

// begins makes the pending write of a counter, unless it has one. write reports that there is a
// write to send. rest reports that no exchange is needed now; the counter is then planned again.
func (y *Sync) begins(s *shard, num uint32, r *ratelimit.Rule, ms, seq int64) (write, rest bool) {
	q := &y.c.queue
	if !s.leased(num, r) {
		return seq != 0 && s.writes(num, r, ms, q.final.Load()) && s.makePending(num, r, seq), false
	}
	if write, rest = s.beginLease(num, r, ms, seq, q); rest {
		h := s.HotOf(num)
		if h.State, _ = s.nextLease(num, r, ms, q); h.State != slab.Quiet {
			s.push(q, num)
			q.wake()
		}
	}
	return write, rest
}

// good reports whether a ticket is the latest of its counter and the counter is not busy.
func (s *shard) good(t Ticket) bool {
	return t.num != 0 && s.ColdOf(t.num).Ticket == t.number && s.HotOf(t.num).State < slab.Busy
}

// writes reports whether the exchange that begins must write. The first exchange of a counter only
// reads, unless its counts are due or the process is stopping.
func (s *shard) writes(num uint32, r *ratelimit.Rule, ms int64, final bool) bool {
	h := s.HotOf(num)
	switch f := s.frames(num, r); {
	case s.PendingSeq(num) != 0:
		return !h.Flags.Has(slab.ReadFirst)
	case !ratelimit.HasUnclaimed(f.Slots):
		return !h.Flags.Has(slab.Unsynced|slab.Stale) && s.repairs[num].converts(r.Requests-f.Floor(r, ms))
	case h.Flags.Has(slab.Unsynced):
		_, n := ratelimit.SumUnflushed(f.Slots)
		return final || s.matters(h, n, r.Requests-f.Floor(r, ms))
	default:
		return true
	}
}

// makePending moves the unclaimed counts of a counter to a new pending write, or keeps the present
// pending write. If all counts of the write are too old to matter and the document needs no
// conversion, it ends the write and returns false.
func (s *shard) makePending(num uint32, r *ratelimit.Rule, seq int64) bool {
	slots := s.Slots(s.HotOf(num), r)
	if s.PendingSeq(num) == 0 {
		for j := range slots {
			slots[j].Pending, slots[j].Unclaimed = slots[j].Unclaimed, 0
		}
		s.ExtrasOf(num).Seq = seq
	}
	for j := range slots {
		if slots[j].Pending != 0 {
			return true
		}
	}
	if s.repairs[num].converts(0) {
		return true
	}
	s.endPending(num)
	return false
}

// absentFor is how long, in milliseconds, a document that did not exist is expected not to be created
// by another process.
const absentFor = 1000

// write fills in the write of a task from the pending write, and decides whether to read the
// document.
func (s *shard) write(num uint32, r *ratelimit.Rule, ms int64, final bool, task *Task) {
	h, c := s.HotOf(num), s.ColdOf(num)
	e := s.ExtrasOf(num)
	w := &task.Write
	*w = Write{Seq: e.Seq, Frame: r.FrameMS, Expire: r.Expiry(h.Start)}
	slots := s.Slots(h, r)
	for j := range slots {
		if n := slots[j].Pending; n != 0 {
			w.Delta = append(w.Delta, ratelimit.FrameCount{Name: ratelimit.FrameName(h.Start-int64(j)*r.FrameMS, r.FrameMS), Count: int64(n)})
		}
	}
	todo := s.repairs[num]
	first := e.Fails == 0 && e.Conflicts == 0 && !e.Uncertain
	created := c.Version == 0 && s.holders(h) > 1 && slab.TicksAgo(ms, c.Synced) > absentFor
	alone := first && !created && !h.Flags.Has(slab.Contended)
	task.Read = !first || !final // at the end, counts of other processes no longer matter
	version, known := todo.versionOf(c)
	if !h.Flags.Has(slab.Unsynced|slab.Stale) && known && (alone || todo.versioned()) {
		w.Versioned, w.Version, w.Etag = true, version, c.EtagValue()
		// After a versioned write the document is known without a read. It is still read once per
		// window, to find parts that can be removed.
		task.Read = todo.versioned() || !final && slab.TicksAgo(ms, c.Began) > ms%r.WindowMS
	}
	todo.join(w, r, h.Start)
}

// Result is the outcome of a task.
type Result struct {
	Status   Status              // of the write; meaningless without a write
	NewEtag  int64               // the etag that the write sets
	Read     bool                // Document is the state of the store at one moment during the exchange
	Document *ratelimit.Document // nil: there is no document
}

// Status is the outcome of one write.
type Status uint8

// The statuses.
const (
	Unknown  Status = iota // it may have been applied, or may still be applied
	Applied                // it was applied by this exchange
	Conflict               // its condition did not hold: not applied by this exchange
	Rejected               // the store refuses it permanently: not applied
)

var statusNames = [...]string{"unknown", "applied", "conflict", "rejected"}

// String returns the name of the status in metrics and logs.
func (s Status) String() string { return statusNames[s&3] }

// Finished is the result of [Sync.Finish].
type Finished struct {
	Next    Plan
	Planned bool  // Next must be scheduled
	Pending bool  // the write is unconfirmed: its outcome is unknown, or it was refused
	Foreign int   // number of frames that are invalid or far in the future
	Lost    int64 // requests that this process has written and that are missing from the document
	Clone   bool  // another process writes under the ID of this one
}

// refusedWait is how long a counter waits after the store has refused its write.
const refusedWait = 30 * time.Second

// Finish takes the outcome of the task that [Sync.Begin] returned. It returns the plan for the next
// exchange of the counter, and its findings. If the counter no longer exists, it does nothing.
func (y *Sync) Finish(now time.Time, task *Task, res Result) (done Finished) {
	ms := ratelimit.Millis(now)
	s := &y.c.shards[task.shard]
	num := task.num
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ColdOf(num).Ticket != task.number || s.HotOf(num).State != slab.Busy {
		return done // the counter no longer exists
	}
	r := s.RuleOf(num)
	if r.Leases {
		ms = y.c.queue.present(ms)
	}
	s.advance(num, r, ms)
	v := s.verdict(num, task, res)
	if res.Read {
		s.merge(num, r, ms, res.Document, v, &done)
		s.wasRead(num)
	}
	if v.void && s.leased(num, r) {
		s.voidLease(num, r, res, v.unclear)
	} else {
		s.settle(num, r, task, res, v)
	}
	if s.leased(num, r) {
		s.finishLease(num, r, ms, task, res, v)
	}
	done.Clone = v.clone
	done.Pending = s.PendingSeq(num) != 0 && (res.Status != Conflict || stuck(s.ExtrasOf(num)))
	done.Next, done.Planned = y.plan(s, num, ms)
	if res.Status == Rejected && task.Seq != 0 && done.Planned {
		done.Next.In = max(done.Next.In, refusedWait)
	}
	if task.Read && !res.Read && done.Planned {
		done.Next.In = max(done.Next.In, firstRetry*time.Millisecond)
	}
	return done
}

// outage tells decisions whether counts can be shared. The syncer sets it.
type outage struct {
	mode      atomic.Uint32
	ended     atomic.Uint32 // tick at which the outage ended, while recovering
	instances atomic.Int32  // live processes at the last count, this one included
}

// The modes of an outage.
const (
	sharing    = iota // counts are shared
	stalled           // writes fail or take too long
	recovering        // writes work again, but some counters had no exchange since
)

// cutOff reports whether the requests of a counter cannot be shared. This is the case if its own
// write fails. While all writes fail, it is the case once its known counts are old. After that it
// is the case until the next exchange of the counter.
func (s *shard) cutOff(num uint32, r *ratelimit.Rule, ms int64) bool {
	h, o := s.HotOf(num), &s.all.outage
	if h.Flags.Has(slab.Failing) {
		return true
	}
	switch mode := o.mode.Load(); {
	case mode == sharing:
		return false
	case h.Flags.Has(slab.Unsynced | slab.Pooled):
		return mode == stalled
	case mode == recovering:
		return slab.TicksAgo(ms, s.ColdOf(num).Synced) > slab.TicksAgo(ms, o.ended.Load())
	default:
		return slab.TicksAgo(ms, s.ColdOf(num).Synced) > r.Grace()
	}
}
