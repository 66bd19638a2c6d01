package counting

import (
	"math/bits"
	"sync/atomic"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/slab"
)

const (
	// gatherReads is how long an urgent first read of a key waits, in milliseconds, to be sent
	// together with others.
	gatherReads = 3
	// Unread is the number of requests from which the first read of a key is urgent, however high
	// its limit: other processes may have used all of it. Further requests wait for the read.
	Unread = 3
	// readWait is the longest time that a request waits for the first read of its key.
	readWait = 250 * time.Millisecond
)

// dueDivisor is the divisor of the due rule: counts are written when they reach a fourth of the
// headroom, divided by the number of processes that may hold back as much. Half the headroom would
// be enough if each process had the counts of the others when it writes, but the processes that
// write first do not have them. In the first window of a busy key 9 % too many requests passed with
// a half and 3 % with a fourth, for the same number of writes.
const dueDivisor = 4

// burst is how many exchanges of one counter may follow each other without spacing. A burst of
// requests, or of the first requests in a frame, is over before one spacing has passed. Without
// this exception every process would admit 10 requests under a limit of 10 a minute.
const burst = 16

// recentAt returns the number of recent exchanges of a counter at ms. It falls by one in a 300th of
// the window, but not faster than every 10 ms.
func recentAt(c *slab.Cold, r *ratelimit.Rule, ms int64) int64 {
	forgotten := slab.TicksAgo(ms, c.Began) / max(r.WindowMS/300, ratelimit.MinSpacing)
	return max(int64(c.Recent)-forgotten, 0)
}

// spacingLeft returns how long the next exchange of a counter must wait, in milliseconds.
func spacingLeft(c *slab.Cold, r *ratelimit.Rule, ms int64) int64 {
	if recentAt(c, r, ms) < burst {
		return 0
	}
	return max(r.Spacing()-slab.TicksAgo(ms, c.Synced), 0)
}

// matters reports whether n unclaimed requests are due. They are if they could matter to the other
// processes, assuming that each of them holds back as many.
func (s *shard) matters(h *slab.Hot, n, headroom int64) bool {
	return max(n, -n)*dueDivisor*s.holders(h) >= headroom
}

// holders returns how many processes may hold back counts of a counter.
func (s *shard) holders(h *slab.Hot) int64 {
	if h.Holders == 0 {
		return int64(s.all.outage.instances.Load())
	}
	return int64(h.Holders)
}

// urgent reports whether a counter with n unclaimed requests must be exchanged at once.
func (s *shard) urgent(h *slab.Hot, n, headroom int64) bool {
	return h.Flags.Has(slab.Stale) || h.Flags.Has(slab.Unsynced) && n >= Unread || s.matters(h, n, headroom)
}

// urgency returns the proper state of a counter that is not busy: quiet, watching, lazy or urgent.
func (s *shard) urgency(num uint32, r *ratelimit.Rule, headroom int64) slab.State {
	if s.leased(num, r) {
		return s.leaseUrgency(num, r)
	}
	h := s.HotOf(num)
	slots := s.Slots(h, r)
	if h.Flags.Has(slab.Unsynced|slab.Stale) || ratelimit.HasUnclaimed(slots) {
		if _, n := ratelimit.SumUnflushed(slots); s.urgent(h, n, headroom) {
			return slab.Urgent
		}
		return slab.Lazy
	}
	switch {
	case s.repairs[num].converts(headroom):
		return slab.Urgent
	case h.Flags.Has(slab.DeniedSinceSync):
		return slab.Watching
	default:
		return slab.Quiet
	}
}

// nextState returns the next state of a counter that is not busy, and its minimum wait in that
// state, in milliseconds.
func (s *shard) nextState(num uint32, r *ratelimit.Rule, ms int64, q *queue) (slab.State, int64) {
	if s.leased(num, r) {
		return s.nextLease(num, r, ms, q)
	}
	h, c := s.HotOf(num), s.ColdOf(num)
	f := s.frames(num, r)
	headroom := max(r.Requests-f.Floor(r, ms), 0)
	idle := ms - int64(s.HotOf(s.FirstOf(num)).Seen)*1000
	if wait, pending := s.retry(num, &q.options); pending {
		return slab.Urgent, wait
	}
	if q.final.Load() && !ratelimit.HasUnclaimed(f.Slots) {
		return slab.Quiet, 0
	}
	switch s.urgency(num, r, headroom) {
	case slab.Urgent:
		switch {
		case h.Flags.Has(slab.Unsynced):
			return slab.Urgent, gatherReads
		case h.Flags.Has(slab.Stale):
			return slab.Urgent, 0
		default:
			return slab.Urgent, spacingLeft(c, r, ms)
		}
	case slab.Lazy:
		if h.Flags.Has(slab.Unsynced) {
			headroom = 0 // unknown
		}
		return slab.Lazy, r.LazyWait(headroom, q.options.Interval.Milliseconds())
	case slab.Quiet:
		if !r.Watched(headroom, idle) {
			return slab.Quiet, 0
		}
	default: // watching
	}
	return slab.Watching, f.Watch(r, headroom, idle, slab.TicksAgo(ms, c.Synced), ms)
}

// firstRetry is the back-off, in milliseconds, after the first exchange that left the outcome of a
// write unknown, and after the third conflict in a row. It doubles with each further one.
const firstRetry = 25

// freeConflicts is how many successive conflicts are retried at once. Each of them also reads the
// document that caused it.
const freeConflicts = 2

// retry reports whether a write is pending, and in how many milliseconds to retry it.
func (s *shard) retry(num uint32, o *SyncOptions) (wait int64, pending bool) {
	if s.PendingSeq(num) == 0 {
		return 0, false
	}
	e := s.ExtrasOf(num)
	tries := max(int(e.Fails), int(e.Conflicts)-freeConflicts)
	if tries <= 0 {
		return 0, true
	}
	return min(firstRetry<<(tries-1), o.MaxBackoff.Milliseconds()), true
}

// queue passes counters to the syncer.
type queue struct {
	attached bool // a syncer exists
	options  SyncOptions
	final    atomic.Bool     // stop reading: the process is stopping
	nonEmpty []atomic.Uint64 // a bit for each shard, set if its inbox is not empty
}

func (q *queue) init(shards int) {
	q.nonEmpty = make([]atomic.Uint64, (shards+63)/64)
}

// present returns the time for a decision on a strict limit. ms is the time that the caller passed
// in.
func (q *queue) present(ms int64) int64 {
	if q.options.Clock == nil {
		return ms
	}
	return max(ms, ratelimit.Millis(q.options.Clock()))
}

// wake signals the syncer, if there is one.
func (q *queue) wake() {
	if q.options.Wake != nil {
		q.options.Wake()
	}
}

// enqueue queues the counters of a key that a decision has made more urgent. It reports whether the
// syncer must be woken for them.
func (p *part) enqueue(q *queue, d *ratelimit.Decision) (wake bool) {
	s := p.s
	if !q.attached || s.HotOf(p.first).Flags.Has(slab.Pooled) {
		return false
	}
	next := p.first
	for i := range p.ls.Rules {
		num, h := next, s.HotOf(next)
		next = h.Next
		if !p.counts(i) {
			continue
		}
		if d.Outcome == ratelimit.Denied {
			if h.Flags.Has(slab.DeniedSinceSync) && h.State >= slab.Watching && !p.ls.Strict {
				continue // a further denial changes nothing
			}
			h.Flags |= slab.DeniedSinceSync
		}
		if h.State < slab.Urgent {
			if u := s.urgency(num, &p.ls.Rules[i], int64(d.Status(p.at+i).Remaining)); u > h.State {
				h.State = u
				s.push(q, num)
				wake = wake || u == slab.Urgent
			}
		}
	}
	return wake
}

// requeue queues the counters of a key that a refund has made more urgent. It reports whether the
// syncer must be woken for them.
func (p *part) requeue(q *queue) (wake bool) {
	for num, r := range p.applied() {
		h := p.s.HotOf(num)
		if u := p.s.urgency(num, r, r.Requests); h.State < slab.Busy && u > h.State {
			h.State = u
			p.s.push(q, num)
			wake = wake || u == slab.Urgent
		}
	}
	return wake
}

// replan makes the syncer plan a counter again that waits for an exchange, because its limits have
// changed. Until then its old plan is in effect.
func (s *shard) replan(q *queue, num uint32) {
	s.HotOf(num).State = slab.Lazy // a request may raise it
	s.push(q, num)
	q.wake()
}

// push adds a counter to the inbox.
func (s *shard) push(q *queue, num uint32) {
	s.inbox = append(s.inbox, num)
	if len(s.inbox) == 1 {
		q.nonEmpty[s.number/64].Or(1 << (s.number % 64))
	}
}

// keptInbox is the largest capacity of an inbox that is reused. After a flood its memory is freed.
const keptInbox = 256

// collect calls visit for each counter that was queued since the last call, and holds the lock of
// its shard. Only one goroutine may call it.
func (c *Counters) collect(visit func(s *shard, num uint32)) {
	for w := range c.queue.nonEmpty {
		for set := c.queue.nonEmpty[w].Swap(0); set != 0; set &= set - 1 {
			s := &c.shards[w*64+bits.TrailingZeros64(set)]
			s.mu.Lock()
			inbox := s.inbox
			s.inbox, s.outbox = s.outbox[:0], nil
			for _, num := range inbox {
				visit(s, num)
			}
			if cap(inbox) <= keptInbox {
				s.outbox = inbox
			}
			s.mu.Unlock()
		}
	}
}
