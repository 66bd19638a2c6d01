package counting

import (
	"iter"
	"math"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/slab"
)

// A request counts against up to three keys: its own key (the user or the client), the key of its
// source address, and the key of the total (the client over all its users). One decision holds the
// locks of all of them, taken in the order of their shards. So no goroutine sees one key counted
// without the others.

// request is a number of requests that are decided together, and the keys that count them.
type request struct {
	c      *Counters
	n      int64
	grant  ratelimit.Grants
	key    ratelimit.Key // own, not bounded
	source string        // see Effective
	parts  [3]part       // own, source, total: in the order of their shards
	reads  bool          // it can wait for first reads
	read   chan struct{} // the first read that it must wait for; nil: none
}

// part is one of the keys of a request, with its counters.
type part struct {
	s     *shard // nil: the request has no such key
	ls    *ratelimit.Limits
	first uint32 // its first counter; 0: not in memory. Valid while the shard is locked
	skip  uint16 // bit i: limit i does not count the request
	at    int    // index of its first limit in the decision
	hash  slab.Hash
}

// init finds the keys that count n requests of a key under its list.
func (q *request) init(c *Counters, k ratelimit.Key, ls *ratelimit.Limits, e *ratelimit.Effective, n int64) {
	q.c, q.n, q.grant, q.key, q.source = c, max(n, 1), e.Grant(), k, e.SourceKey
	if ls.Counts(e.Grant()) {
		p := &q.parts[0]
		p.ls, p.skip = ls, ls.Skip(e.Grant())
		p.s, p.hash = c.lookup(k.Bounded())
	}
	q.share(e)
}

// share finds the shared keys.
func (q *request) share(e *ratelimit.Effective) {
	if e.SourceKey != "" {
		p := &q.parts[1]
		p.ls = e.Source
		p.s, p.hash = q.c.lookup(q.keyOf(1))
	}
	if e.Total != nil {
		p := &q.parts[2]
		p.ls = e.Total
		p.s, p.hash = q.c.lookup(q.keyOf(2))
	}
}

// keyOf returns the bounded key of a part.
func (q *request) keyOf(i int) ratelimit.Key {
	k := q.key
	switch i {
	case 1:
		k.Username = q.source
	case 2:
		k.Username = ratelimit.TotalUser
	}
	return k.Bounded()
}

// find sets the first counter of part i. If add is set, it adds a key that is not in memory, and
// puts the key under the limits of the part. It returns false if there is no room for the key. The
// shard must be locked.
func (q *request) find(i int, ms int64, add bool) (room bool) {
	p := &q.parts[i]
	s := p.s
	p.first = s.Find(p.hash)
	switch {
	case p.first == 0 && add:
		p.first = s.addKey(q.keyOf(i), p.hash, p.ls, ms)
		return p.first != 0
	case p.first == 0:
		p.first = s.findOverflow(p.ls, placeOf(p.hash))
		return p.first != 0 || !s.noRoom(p.ls, ms)
	case s.HotOf(p.first).Limits == p.ls.Number:
	case add:
		p.first = s.change(&q.c.queue, p.first, p.hash, p.ls, ms)
	default: // known only under other limits
		p.first = 0
	}
	return true
}

// counts reports whether limit i counts the request.
func (p *part) counts(i int) bool { return p.skip>>i&1 == 0 }

// applied yields the counters of a key that count the request, with their rules.
func (p *part) applied() iter.Seq2[uint32, *ratelimit.Rule] {
	return func(yield func(uint32, *ratelimit.Rule) bool) {
		num := p.first
		for i := range p.ls.Rules {
			if p.counts(i) && !yield(num, &p.ls.Rules[i]) {
				return
			}
			num = p.s.HotOf(num).Next
		}
	}
}

// lock locks every key and finds its counters. It reports whether all keys are in memory under the
// limits of the request.
func (q *request) lock() (found bool) {
	found = true
	for i := range q.parts {
		if p := &q.parts[i]; p.s != nil {
			p.s.mu.Lock()
			p.first = p.s.FindUnder(p.hash, p.ls)
			found = found && p.first != 0
		}
	}
	return found
}

// unlock releases the locks of the keys.
func (q *request) unlock() {
	for i := range q.parts {
		if p := &q.parts[len(q.parts)-1-i]; p.s != nil {
			p.s.mu.Unlock()
		}
	}
}

// Refund gives back n requests that were admitted at the time admitted. They no longer count,
// neither here nor in the store. Refund returns false and changes nothing if their frame has left
// the window, if the key is not in memory, or if its limits have changed. Callers must not refund a
// request twice.
func (c *Counters) Refund(now, admitted time.Time, k ratelimit.Key, e *ratelimit.Effective, n int64) bool {
	if n < 1 {
		return false
	}
	var q request
	q.init(c, k, e.For(k), e, n)
	return q.refund(ratelimit.Millis(now), ratelimit.Millis(admitted))
}

// refund gives back a request that was counted at the time at, either for all keys or for none.
func (q *request) refund(ms, at int64) (done bool) {
	defer q.unlock()
	if !q.lock() {
		return false
	}
	for i := range q.parts {
		if p := &q.parts[i]; p.s != nil {
			done = p.refund(&q.c.queue, ms, at, q.n) || done
		}
	}
	return done
}

// refund gives back n requests of a key that were counted at the time at, and queues its counters
// for the syncer. It reports whether their frames still existed.
func (p *part) refund(q *queue, ms, at, n int64) (done bool) {
	for num, r := range p.applied() {
		p.s.advance(num, r, ms)
		done = p.s.giveBack(num, r, at, n) || done
	}
	if done && q.attached && p.requeue(q) {
		q.wake()
	}
	return done
}

// giveBack uncounts n requests of a counter that were counted at the time at. It reports whether
// their frame still existed.
func (s *shard) giveBack(num uint32, r *ratelimit.Rule, at, n int64) bool {
	f := s.frames(num, r)
	j, there := r.Index(f.Start, at)
	switch {
	case !there || f.Slots[j].Total(1) < n:
		return false
	case !s.leased(num, r) || j > 1:
		f.Slots[j].Count(-n)
	case j == 1: // slot 0 is the next frame, and nothing was admitted in it
		s.leaseOf(num).held[1] += n
	default:
		return false
	}
	return true
}

// Room returns how many more requests of the key would pass: under its own limits, under the limits
// of its source, and under the total. Each is [math.MaxInt64] if no such limit counts them. Permits
// of a strict limit that an exchange can bring count as room. Room counts nothing, but it adds the
// key to memory like [Counters.Take].
func (c *Counters) Room(now time.Time, k ratelimit.Key, e *ratelimit.Effective) (own, source, total int64) {
	var q request
	q.init(c, k, e.For(k), e, 1)
	ms := ratelimit.Millis(now)
	return q.room(0, ms), q.room(1, ms), q.room(2, ms)
}

// room returns how many more requests the limits of part i admit.
func (q *request) room(i int, ms int64) int64 {
	p := &q.parts[i]
	least := int64(math.MaxInt64)
	if p.s == nil {
		return least
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if !q.find(i, ms, true) {
		return 0
	}
	for num, r := range p.applied() {
		var f ratelimit.Frames
		var d ratelimit.Decision
		p.s.view(&f, num, r, ms, &d)
		least = min(least, f.Room(r))
	}
	return least
}

// RefreshTime returns how long a [Counters.Refresh] usually takes.
func (c *Counters) RefreshTime() time.Duration {
	return time.Duration(c.all.leasing.trip.Load()+gatherReads) * time.Millisecond
}

// Refresh requests the counts of other processes for a key. It returns false if counts are not
// shared, or if the key is not in memory.
func (c *Counters) Refresh(k ratelimit.Key, e *ratelimit.Effective) bool {
	var q request
	q.init(c, k, e.For(k), e.Own(), 1)
	p := &q.parts[0]
	if !c.queue.attached || p.s == nil {
		return false
	}
	defer q.unlock()
	if !q.lock() {
		return false
	}
	p.refresh(&c.queue)
	return true
}

// refresh requests the counts of other processes for the key.
func (p *part) refresh(q *queue) {
	for num := range p.applied() {
		p.s.HotOf(num).Flags |= slab.Stale
	}
	if p.requeue(q) {
		q.wake()
	}
}
