package ratelimit

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// state is the state of a counter between two exchanges. The package documentation has a table. The
// states up to urgent are ordered by urgency.
type state uint8

const (
	quiet    state = iota // nothing to exchange
	watching              // its document is to be read at a certain time
	lazy                  // has counts to write within a time
	urgent                // to be written or read as soon as its spacing allows
	busy                  // in an exchange
	unused                // no counter
)

// flags describe a counter and the process's knowledge of its document.
type flags uint8

const (
	unsynced        flags = 1 << iota // no exchange has read the document yet
	stale                             // known differs from the document
	readFirst                         // the document must be read before the pending write is sent again
	contended                         // other processes wrote the document recently
	deniedSinceSync                   // a request was denied since the last exchange
	failing                           // the outcome of the pending write remains unknown
	pooled                            // an overflow counter: shared by several keys, never exchanged
	carried                           // has counts besides its document: see carry
)

func (f flags) has(g flags) bool { return f&g != 0 }

func (f *flags) set(g flags, on bool) {
	if *f &^= g; on {
		*f |= g
	}
}

// Bounds of the time between two exchanges of one counter, in milliseconds.
const (
	minSpacing = 10
	maxSpacing = 100
	// maxWatch is the longest time between two reads of a counter near its limit, while a request
	// could pass.
	maxWatch = 2000
	// gatherReads is how long the first read of a new key waits, to be sent together with others.
	gatherReads = 3
)

// spacing returns the minimum time between two exchanges of a counter, in milliseconds. It is the
// time in which the limit admits three requests, but at least a 900th and at most a 300th of the
// window. That is 10 ms for 1000 requests a second, 67 ms for 3000 a minute, and 100 ms for
// anything slower. In that time each process may admit one request too many.
func spacing(r *rule) int64 {
	three := 3 * r.window / r.Requests
	return min(max(r.window/900, min(three, r.window/300), minSpacing), maxSpacing)
}

// burst is how many exchanges of one counter may follow each other without spacing. A burst of
// requests, or of the first requests in a frame, is over before one spacing has passed. Without
// this exception every process would admit 10 requests under a limit of 10 a minute.
const burst = 16

// recentAt returns the number of recent exchanges of a counter at ms. It falls by one in a 300th of
// the window, but not faster than every 10 ms.
func (c *cold) recentAt(r *rule, ms int64) int64 {
	forgotten := ticksAgo(ms, c.began) / max(r.window/300, minSpacing)
	return max(int64(c.recent)-forgotten, 0)
}

// spacingLeft returns how long the next exchange of a counter must wait, in milliseconds.
func (c *cold) spacingLeft(r *rule, ms int64) int64 {
	if c.recentAt(r, ms) < burst {
		return 0
	}
	return max(spacing(r)-ticksAgo(ms, c.synced), 0)
}

// dueDivisor is the divisor of the due rule: counts are written when they reach a fourth of the
// headroom, divided by the number of processes that may hold back as much. Half the headroom would
// be enough if each process had the counts of the others when it writes, but the processes that
// write first do not have them. In the first window of a busy key 9 % too many requests passed with
// a half and 3 % with a fourth, for the same number of writes.
const dueDivisor = 4

// matters reports whether n unclaimed requests are due. They are if they could matter to the other
// processes, assuming that each of them holds back as many.
func (s *shard) matters(h *hot, n, headroom int64) bool {
	return max(n, -n)*dueDivisor*s.holders(h) >= headroom
}

// holders returns how many processes may hold back counts of a counter.
func (s *shard) holders(h *hot) int64 {
	if h.holders == 0 {
		return int64(s.all.outage.instances.Load())
	}
	return int64(h.holders)
}

// urgency returns the proper state of a counter that is not busy: quiet, watching, lazy or urgent.
func (s *shard) urgency(num uint32, r *rule, headroom int64) state {
	if s.leased(num, r) {
		return s.leaseUrgency(num, r)
	}
	h := s.hotOf(num)
	slots := s.slots(h, r)
	if h.flags.has(unsynced | stale) {
		return urgent
	}
	if !dirty(slots) {
		if s.repairs[num].converts(headroom) {
			return urgent
		}
		if h.flags.has(deniedSinceSync) {
			return watching
		}
		return quiet
	}
	if _, n := unflushed(slots); s.matters(h, n, headroom) {
		return urgent
	}
	return lazy
}

// nextState returns the next state of a counter that is not busy, and its minimum wait in that
// state, in milliseconds.
func (s *shard) nextState(num uint32, r *rule, ms int64, q *queue) (state, int64) {
	if s.leased(num, r) {
		return s.nextLease(num, r, ms, q)
	}
	h, c := s.hotOf(num), s.coldOf(num)
	f := s.frames(num, r)
	headroom := max(r.Requests-f.floor(r, ms), 0)
	idle := ms - int64(s.hotOf(s.firstOf(num)).seen)*1000
	if wait, pending := s.retry(num, &q.options); pending {
		return urgent, wait
	}
	if q.final.Load() && !dirty(f.slots) {
		return quiet, 0
	}
	switch s.urgency(num, r, headroom) {
	case urgent:
		switch {
		case h.flags.has(unsynced):
			return urgent, gatherReads
		case h.flags.has(stale):
			return urgent, 0
		default:
			return urgent, c.spacingLeft(r, ms)
		}
	case lazy:
		return lazy, lazyWait(r, headroom, q.options.Interval.Milliseconds())
	case quiet:
		if !watched(r, headroom, idle) {
			return quiet, 0
		}
	default: // watching
	}
	return watching, f.watch(r, headroom, idle, ticksAgo(ms, c.synced), ms)
}

// firstRetry is the back-off, in milliseconds, after the first exchange that left the outcome of a
// write unknown, and after the third conflict in a row. It doubles with each further one.
const firstRetry = 25

// freeConflicts is how many successive conflicts are retried at once. Each of them also reads the
// document that caused it.
const freeConflicts = 2

// retry reports whether a write is pending, and in how many milliseconds to retry it.
func (s *shard) retry(num uint32, o *SyncOptions) (wait int64, pending bool) {
	if s.pendingSeq(num) == 0 {
		return 0, false
	}
	e := s.extrasOf(num)
	tries := max(int(e.fails), int(e.conflicts)-freeConflicts)
	if tries <= 0 {
		return 0, true
	}
	return min(firstRetry<<(tries-1), o.MaxBackoff.Milliseconds()), true
}

// watched reports whether a counter must be read although it has nothing to write. This is the case
// if it had a request within the last window and at most half of its limit is left. Otherwise the
// next request would be decided without the recent counts of other processes.
func watched(r *rule, headroom, idle int64) bool {
	return headroom <= r.Requests/2 && idle < min(max(r.window, maxWatch), time.Minute.Milliseconds())
}

// watch returns in how many milliseconds to read a counter with nothing to write. If no request is
// possible, other processes can only prolong that, so the document is read when the wait is about
// to end. (Resets by operators arrive with the policies.) Otherwise the time is an eighth of the
// time in which the limit admits one request, or a fourth of the time since the last request here,
// within bounds.
func (f *frames) watch(r *rule, headroom, idle, age, ms int64) int64 {
	least := spacing(r)
	if headroom == 0 {
		return max(f.firstBelow(r, ms, r.Requests)-ms-least, least-age, 0)
	}
	every := min(max(r.window/r.Requests/8, idle/4), maxWatch)
	return max(every-age, least-age, 0)
}

// maxLazyFactor is how many flush intervals the counts of a key far below its limit may wait.
const maxLazyFactor = 10

// lazyWait returns how many milliseconds counts that are not due may wait. That is the flush
// interval for a key that has used half of its limit, and ten times as long for a key that has used
// less than a quarter. It is never longer than a sixth of the window. Counts that become due wait
// no longer.
func lazyWait(r *rule, headroom, interval int64) int64 {
	free := float64(headroom) / float64(r.Requests)
	factor := 1 + (maxLazyFactor-1)*min(max(4*free-2, 0), 1)
	longest := max(r.window/6, spacing(r))
	return min(int64(factor*float64(interval)), longest)
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
	return max(ms, millis(q.options.Clock()))
}

// wake signals the syncer, if there is one.
func (q *queue) wake() {
	if q.options.Wake != nil {
		q.options.Wake()
	}
}

// enqueue queues the counters of a key that a decision has made more urgent. It reports whether the
// syncer must be woken for them.
func (p *part) enqueue(q *queue, stand []status, outcome Outcome) (wake bool) {
	s := p.s
	if !q.attached || s.hotOf(p.first).flags.has(pooled) {
		return false
	}
	next := p.first
	for i := range p.ls.rules {
		num, h := next, s.hotOf(next)
		next = h.next
		if !p.counts(i) {
			continue
		}
		if outcome == Denied {
			if h.flags.has(deniedSinceSync) && h.state >= watching && !p.ls.strict {
				continue // a further denial changes nothing
			}
			h.flags |= deniedSinceSync
		}
		if h.state < urgent {
			if u := s.urgency(num, &p.ls.rules[i], int64(stand[i].remaining)); u > h.state {
				h.state = u
				s.push(q, num)
				wake = wake || u == urgent
			}
		}
	}
	return wake
}

// requeue queues the counters of a key that a refund has made more urgent. It reports whether the
// syncer must be woken for them.
func (p *part) requeue(q *queue) (wake bool) {
	for num, r := range p.applied() {
		h := p.s.hotOf(num)
		if u := p.s.urgency(num, r, r.Requests); h.state < busy && u > h.state {
			h.state = u
			p.s.push(q, num)
			wake = wake || u == urgent
		}
	}
	return wake
}

// replan makes the syncer plan a counter again that waits for an exchange, because its limits have
// changed. Until then its old plan is in effect.
func (s *shard) replan(q *queue, num uint32) {
	s.hotOf(num).state = lazy // a request may raise it
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
