package ratelimit

import (
	"math/bits"
	"sync/atomic"
)

// What a counter waits for at the syncer, in the order of urgency.
const (
	idle   uint8 = iota // nothing
	lazy                // has counts to be written some time
	urgent              // to be written or read as soon as its spacing allows
	busy                // the syncer is at it, and looks again afterwards
)

// syncInfo is what the syncer knows about a counter.
type syncInfo struct {
	version  int64
	etag     int64 // 0 with version 0: no document
	beganAt  int64 // when the latest exchange began, milliseconds
	syncedAt int64 // when the latest one began that made g right; 0: never
	writers  uint16
	ticket   uint16
	state    uint8
	lost     uint8 // conflicts lately
	recent   uint8 // exchanges lately; see begun
	flags    flags
}

// flags are what is to be remembered of a counter's document.
type flags uint8

const (
	stale   flags = 1 << iota // g is not right
	resolve                   // the document says whether the pending write was applied
	shared                    // others wrote it lately
	asked                     // somebody was denied since g was last right
)

func (f flags) has(g flags) bool { return f&g != 0 }

func (f *flags) set(g flags, on bool) {
	if *f &^= g; on {
		*f |= g
	}
}

// syncState is what [Counters] keep for the syncer.
type syncState struct {
	attached  bool
	instances atomic.Int32
	signal    chan struct{}
	full      []atomic.Uint64 // a bit for each shard whose inbox is not empty
}

func (q *syncState) init(shards int) {
	q.signal = make(chan struct{}, 1)
	q.full = make([]atomic.Uint64, (shards+63)/64)
	q.instances.Store(1)
}

func (q *syncState) wake() {
	select {
	case q.signal <- struct{}{}:
	default: // it is awake
	}
}

// Attach makes the counters tell a syncer what it has to do. It must be called
// before the first Take; without it counts stay in this process.
func (c *Counters) Attach() { c.syncer.attached = true }

// SetInstances sets how many instances are alive: as many writers are assumed
// of a key of which nothing is known.
func (c *Counters) SetInstances(n int) { c.syncer.instances.Store(int32(min(max(n, 1), 10_000))) }

// Wake is signalled when a counter became urgent.
func (c *Counters) Wake() <-chan struct{} { return c.syncer.signal }

// enqueue hands the counters of an entry to the syncer if they have become more urgent
// than they were, and reports whether it has to wake up for them.
func (c *Counters) enqueue(s *shard, e *entry, d *Decision) (wake bool) {
	for i := range e.limits.rules {
		x := e.at(i)
		if d.Outcome == Denied {
			x.sync.flags |= asked
		}
		if x.sync.state >= urgent {
			continue
		}
		if u := c.urgency(x, int64(d.status[i].remaining)); u > x.sync.state {
			x.sync.state = u
			c.push(s, x)
			wake = wake || u == urgent
		}
	}
	return wake
}

// dueShare is which part of the headroom all instances together may hold back,
// if each holds back as much: a fourth. Half of it would do if an instance knew
// the others' when it writes, but those that write first do not: in the
// first window of a busy key 9 % too many passed with a half, 3 % with a fourth, for the
// same number of writes.
const dueShare = 4

// urgency is the rule when a counter is due: as soon as what it has not yet written
// could matter to the others, who may each have as much.
func (c *Counters) urgency(x *Counter, headroom int64) uint8 {
	if x.sync.syncedAt == 0 || x.sync.flags.has(asked) {
		return urgent
	}
	n := x.inFlight()
	if n == 0 {
		return idle
	}
	writers := max(int64(x.sync.writers), 1)
	if x.sync.writers == 0 {
		writers = int64(c.syncer.instances.Load())
	}
	if n*dueShare*writers >= headroom {
		return urgent
	}
	return lazy
}

func (c *Counters) push(s *shard, x *Counter) {
	s.inbox = append(s.inbox, x)
	if len(s.inbox) == 1 {
		c.syncer.full[s.index/64].Or(1 << (s.index % 64))
	}
}

// keptInbox is how large an inbox may be to be used again: after a flood, its
// memory is given back.
const keptInbox = 64

// Collect appends the counters that have become due since it was last called.
// Only one goroutine may call it.
func (c *Counters) Collect(dst []*Counter) []*Counter {
	for w := range c.syncer.full {
		for set := c.syncer.full[w].Swap(0); set != 0; set &= set - 1 {
			s := &c.shards[w*64+bits.TrailingZeros64(set)]
			s.mu.Lock()
			inbox := s.inbox
			s.inbox, s.spare = s.spare[:0], nil
			if cap(inbox) <= keptInbox {
				s.spare = inbox
			}
			s.mu.Unlock()
			dst = append(dst, inbox...)
			clear(inbox) // ours until the next Collect
		}
	}
	return dst
}
