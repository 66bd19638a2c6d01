package ratelimit

import (
	"time"
)

// Sync is all that internal/syncer sees of [Counters]: which counters are due,
// what an exchange has to do for one, and what came of it. Its methods are safe
// for concurrent use, except that only one goroutine may call Due.
type Sync struct {
	c *Counters
}

// SyncOptions say how often counters are exchanged.
type SyncOptions struct {
	Interval   time.Duration // how long counts wait that do not matter to other processes yet
	MaxBackoff time.Duration // bounds the wait of a counter whose write fails
}

// Sync makes the counters say what is to be exchanged. It must be called before
// the first Take; without it counts stay in this process.
func (c *Counters) Sync(o SyncOptions) *Sync {
	c.queue.options, c.queue.attached = o, true
	return &Sync{c: c}
}

// SetInstances sets how many processes are alive, this one included: as many may
// hold counts back of a key of which nothing is known.
func (y *Sync) SetInstances(n int) {
	y.c.all.outage.instances.Store(int32(min(max(n, 1), 10_000)))
}

// Stalled says that counts cannot be shared: limits are decided by their OnOutage.
func (y *Sync) Stalled() { y.c.all.outage.mode.Store(stalled) }

// Recovering says that counts can be shared again. A counter that was not exchanged
// since is still decided by its OnOutage, until Recovered.
func (y *Sync) Recovering(now time.Time) {
	if y.c.all.outage.mode.Load() == stalled {
		y.c.all.outage.ended.Store(tick(millis(now)))
		y.c.all.outage.mode.Store(recovering)
	}
}

// Recovered ends what Recovering began.
func (y *Sync) Recovered() { y.c.all.outage.mode.CompareAndSwap(recovering, sharing) }

// SetFinal ends all planning of reads: the process stops, and only what is
// unwritten matters.
func (y *Sync) SetFinal() { y.c.queue.final.Store(true) }

// Wake is signalled when a counter became urgent.
func (y *Sync) Wake() <-chan struct{} { return y.c.queue.signal }

// Ticket admits one Begin. Only the latest of a counter is good, so a counter
// that is planned anew is not begun twice.
type Ticket struct {
	shard, num uint32
	number     uint16
}

// Counter identifies the counter of a ticket among those in memory.
func (t Ticket) Counter() uint64 { return uint64(t.shard)<<32 | uint64(t.num) }

// Plan is when a counter is to be exchanged next.
type Plan struct {
	Ticket
	In   time.Duration // at the earliest
	Lazy bool          // a little later is as good
}

// Due appends the plans of the counters that came to wait for something, or for
// something more urgent, since the last call.
func (y *Sync) Due(now time.Time, dst []Plan) []Plan {
	ms := millis(now)
	y.c.collect(func(s *shard, num uint32) {
		if st := s.hotOf(num).state; st > quiet && st < busy {
			if p, ok := y.plan(s, num, ms); ok {
				dst = append(dst, p)
			}
		}
	})
	return dst
}

// plan draws the next ticket for a counter, under the lock of its shard. False
// if it waits for nothing.
func (y *Sync) plan(s *shard, num uint32, ms int64) (Plan, bool) {
	r := s.ruleOf(num)
	s.advance(num, r, ms)
	st, wait := s.nextState(num, r, ms, &y.c.queue)
	s.hotOf(num).state = st
	if st == quiet {
		return Plan{}, false
	}
	return y.planned(s, num, time.Duration(wait)*time.Millisecond, st == lazy), true
}

func (y *Sync) planned(s *shard, num uint32, in time.Duration, lazy bool) Plan {
	c := s.coldOf(num)
	c.ticket++
	return Plan{Ticket: Ticket{shard: s.number, num: num, number: c.ticket}, In: in, Lazy: lazy}
}

// Of returns plans for the counters of a key, to be exchanged at once; none of
// those that are busy, or not in memory.
func (y *Sync) Of(k Key) (plans []Plan) {
	s, h := y.c.lookup(k.bounded())
	s.mu.Lock()
	defer s.mu.Unlock()
	nums, n := s.chainOf(s.find(h))
	for _, num := range nums[:n] {
		if s.hotOf(num).state != busy {
			s.hotOf(num).state = urgent
			plans = append(plans, y.planned(s, num, 0, false))
		}
	}
	return plans
}

// Unwritten is what the store is not known to have, of all counters.
type Unflushed struct {
	Counters int
	Requests int64 // admitted, less those given back
}

// Unwritten counts what the store is not known to have. plan, if not nil, is
// called with a plan for each of those counters that is not busy.
func (y *Sync) Unflushed(now time.Time, plan func(Plan)) (u Unflushed) {
	ms := millis(now)
	for i := range y.c.shards {
		s := &y.c.shards[i]
		s.mu.Lock()
		for num := uint32(1); num < s.numbers; num++ {
			h := s.hotOf(num)
			if h.state == unused || h.flags.has(pooled) {
				continue
			}
			s.advance(num, s.ruleOf(num), ms)
			pending, since := unflushed(s.slotsOf(num))
			if pending == 0 && since == 0 && !dirty(s.slotsOf(num)) {
				continue
			}
			u.Counters++
			u.Requests += pending + since
			if plan != nil && h.state != busy {
				if p, ok := y.plan(s, num, ms); ok {
					plan(p)
				}
			}
		}
		s.mu.Unlock()
	}
	return u
}

// Task is what one exchange does for a counter.
type Task struct {
	Ticket
	ID      CounterID
	Limit   Limit
	Age     time.Duration // of what is known; 0 if nothing is
	Read    bool          // the document is wanted
	Pending int64         // sequence of the pending write, whether this task sends it or not; 0 for none
	Write
}

// Write is the write of a task; none if Seq is 0.
type Write struct {
	Seq           int64
	Versioned     bool // depends on Version and Etag, otherwise on Seq and Frame
	Version, Etag int64
	Frame         int64 // length of the frames, milliseconds
	Delta         []FrameCount
	Rewrite       bool // Delta replaces all frames
	Remove        Removal
	Pruned        int64
	Expire        time.Time
}

// Begin makes the counter busy until Finish, and returns what is to be done. seq
// must be larger than in any call before; a write that is sent again keeps its
// own. With a seq of 0 the document is only read. False if the ticket is no
// longer good.
func (y *Sync) Begin(now time.Time, t Ticket, seq int64) (task Task, ok bool) {
	ms := millis(now)
	s := &y.c.shards[t.shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.good(t) {
		return task, false
	}
	r := s.ruleOf(t.num)
	s.advance(t.num, r, ms)
	h, c := s.hotOf(t.num), s.coldOf(t.num)
	k := s.key(t.num)
	task = Task{Ticket: t, ID: CounterID{ClientID: k.ClientID, Username: k.Username, Limit: r.doc}, Limit: r.Limit, Read: true}
	if !h.flags.has(unsynced) {
		task.Age = time.Duration(ticksAgo(ms, c.synced)) * time.Millisecond
	}
	final := y.c.queue.final.Load()
	if seq != 0 && s.writes(t.num, r, ms, final) && s.makePending(t.num, r, seq) {
		s.write(t.num, r, ms, final, &task)
	}
	task.Pending = s.pendingSeq(t.num)
	c.recent = uint8(min(c.recentAt(r, ms)+1, 255)) //nolint:gosec // a count of 255 at most
	h.state, c.began = busy, tick(ms)
	return task, true
}

// good reports whether a ticket is the latest of its counter, which waits.
func (s *shard) good(t Ticket) bool {
	return t.num != 0 && s.coldOf(t.num).ticket == t.number && s.hotOf(t.num).state < busy
}

// writes reports whether the next exchange of a counter is to write. The first
// contact only reads, unless other processes could need the counts at once, or
// this process ends.
func (s *shard) writes(num uint32, r *rule, ms int64, final bool) bool {
	h := s.hotOf(num)
	switch f := s.frames(num, r); {
	case s.pendingSeq(num) != 0:
		return !h.flags.has(readFirst)
	case !dirty(f.slots):
		return !h.flags.has(unsynced|stale) && s.chores[num].converts(r.Requests-f.floor(r, ms))
	case h.flags.has(unsynced):
		_, n := unflushed(f.slots)
		return final || s.matters(h, n, r.Requests-f.floor(r, ms))
	default:
		return true
	}
}

// takeUp makes the pending write of what was admitted since the last, or keeps
// the one there is. False if nothing of it matters any more, and the document
// is in the right frames.
func (s *shard) makePending(num uint32, r *rule, seq int64) bool {
	slots := s.slots(s.hotOf(num), r)
	if s.pendingSeq(num) == 0 {
		for j := range slots {
			slots[j].pending, slots[j].unclaimed = slots[j].unclaimed, 0
		}
		s.extrasOf(num).seq = seq
	}
	for j := range slots {
		if slots[j].pending != 0 {
			return true
		}
	}
	if s.chores[num].converts(0) {
		return true
	}
	s.endPending(num)
	return false
}

// write fills in the write of a task from the pending write.
func (s *shard) write(num uint32, r *rule, ms int64, final bool, task *Task) {
	h, c := s.hotOf(num), s.coldOf(num)
	e := s.extrasOf(num)
	w := &task.Write
	*w = Write{Seq: e.seq, Frame: r.frame, Expire: r.expiry(h.start)}
	slots := s.slots(h, r)
	for j := range slots {
		if n := slots[j].pending; n != 0 {
			w.Delta = append(w.Delta, FrameCount{frameName(h.start-int64(j)*r.frame, r.frame), int64(n)})
		}
	}
	todo := s.chores[num]
	first := e.fails == 0 && e.conflicts == 0 && !e.uncertain
	alone := first && !h.flags.has(contended)
	task.Read = !first || !final // what others have written no longer matters at the end
	version, known := todo.versionOf(c)
	if !h.flags.has(unsynced|stale) && known && (alone || todo.versioned()) {
		w.Versioned, w.Version, w.Etag = true, version, c.etagValue()
		// It saves the read, except once in a window, to find what may leave the document.
		task.Read = todo.versioned() || !final && ticksAgo(ms, c.began) > ms%r.window
	}
	todo.join(w, r, h.start)
}

// Result is the outcome of a task.
type Result struct {
	Status   Status    // of the write, if there was one
	NewEtag  int64     // that the write gives to the document
	Read     bool      // Document is what the store had at some moment during the exchange
	Document *Document // nil: no document
}

// Status is the outcome of one write.
type Status uint8

// The statuses.
const (
	Unknown  Status = iota // it may have been applied, or may yet be
	Applied                // it was applied, now
	Conflict               // its condition did not hold; it was not applied now
	Rejected               // the store refuses it and always will: not applied
)

var statusNames = [...]string{"unknown", "applied", "conflict", "rejected"}

// String returns the name of the status as it stands in metrics and logs.
func (s Status) String() string { return statusNames[s&3] }

// Finished is what came of a task.
type Finished struct {
	Next    Plan
	Planned bool  // Next is to be scheduled
	Pending bool  // the outcome of the write is not known, or it is refused
	Foreign int   // frames of the document that make no sense: negative, absurd, or far in the future
	Lost    int64 // requests that this process has written and the document no longer has
	Clone   bool  // another process writes under the name of this one
}

// refusedWait is how long a counter waits whose write the store refuses.
const refusedWait = 30 * time.Second

// Finish ends what Begin began.
func (y *Sync) Finish(now time.Time, task *Task, res Result) (done Finished) {
	ms := millis(now)
	s := &y.c.shards[task.shard]
	num := task.num
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.coldOf(num).ticket != task.number || s.hotOf(num).state != busy {
		return done // the counter is gone
	}
	r := s.ruleOf(num)
	s.advance(num, r, ms)
	v := s.judge(num, task, res)
	if res.Read {
		s.merge(num, r, ms, res.Document, v, &done)
	}
	s.settle(num, r, task, res, v)
	done.Clone = v.clone
	done.Pending = s.pendingSeq(num) != 0 && (res.Status != Conflict || s.extrasOf(num).stuck())
	done.Next, done.Planned = y.plan(s, num, ms)
	if res.Status == Rejected && task.Seq != 0 && done.Planned {
		done.Next.In = max(done.Next.In, refusedWait)
	}
	if task.Read && !res.Read && done.Planned {
		done.Next.In = max(done.Next.In, firstRetry*time.Millisecond)
	}
	return done
}
