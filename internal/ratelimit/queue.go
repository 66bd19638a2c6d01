package ratelimit

import (
	"math/bits"
	"sync/atomic"
)

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
