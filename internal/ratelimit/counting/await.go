package counting

import (
	"context"
	"slices"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/slab"
)

// maxWaiters bounds the requests of one key that wait for permits, because the shard stays locked
// while all of them are decided.
const maxWaiters = 1024

// waitQueue has the requests of one key that wait for permits, in order of arrival.
type waitQueue struct {
	waiters []*waiter
	n       [ratelimit.MaxLimits]int64 // waiting requests under each limit of the key that counts them
}

// waiter is a request that waits for permits.
type waiter struct {
	request
	since   int64         // when it arrived
	longest time.Duration // longest wait
	first   uint32        // first counter of its key; 0: it is decided
	at      int64         // when it was decided
	d       ratelimit.Decision
	done    chan struct{} // closed when d is final; nil: it waits only for request.read
}

// decided ends the wait.
func (w *waiter) decided(at int64) {
	w.first, w.at = 0, at
	close(w.done)
}

// Await is [Counters.Take] for callers that can wait. If a request under a strict limit lacks only
// permits, Await waits until the next exchange brings some, but at most the LeaseWait of the limit.
// After the first requests of a key it waits until this process has read the key, but at most
// readWait. Await returns the decision and how long it waited, which is 0 for an immediate decision.
//
// If the context ends while it waits for permits, the request is denied and takes none. A request is
// admitted at the time now plus the wait, to the millisecond: see [Counters.Refund].
func (c *Counters) Await(ctx context.Context, now time.Time, k ratelimit.Key, e *ratelimit.Effective, n int64) (d ratelimit.Decision, waited time.Duration) {
	came := ratelimit.Millis(now)
	w := c.take(came, k, e, n, &d, true, e.Mode == ratelimit.Enforce)
	if w == nil {
		return d, 0
	}
	began, at := time.Now(), came
	for w != nil {
		if w.done != nil {
			d, at = c.outcome(ctx, w), w.at
		}
		if w.read == nil {
			break
		}
		reads := awaits(ctx, w.read, began)
		at, d = c.queue.present(came), ratelimit.Decision{}
		w = c.take(at, k, e, n, &d, true, reads)
	}
	waited = time.Since(began)
	if d.Outcome == ratelimit.Allowed { // at the time of the decision, even if this goroutine runs later
		waited = time.Duration(at-came) * time.Millisecond
	}
	d.Conclude(e)
	return d, waited
}

// AwaitRead is for callers who admit requests before they count them. ahead is how many they have
// admitted, under the limits of the key, of its source, and of the total. From [Unread] of them
// AwaitRead requests the first read of a key, and waits for it, but at most readWait. It returns how
// long it waited.
func (c *Counters) AwaitRead(ctx context.Context, now time.Time, k ratelimit.Key, e *ratelimit.Effective, ahead [3]int64) (waited time.Duration) {
	var q request
	q.init(c, k, e.For(k), e, 1)
	began, ms := time.Now(), ratelimit.Millis(now)
	for reads := true; reads; waited = time.Since(began) {
		read := q.firstRead(ms, &ahead)
		if read == nil {
			break
		}
		reads = awaits(ctx, read, began)
	}
	return waited
}

// awaits waits for a first read, at most readWait since began. It reports false if the counts that
// are known must decide, also because the caller has gone.
func awaits(ctx context.Context, read <-chan struct{}, began time.Time) bool {
	select {
	case <-read:
		return true
	case <-ctx.Done():
	case <-time.After(readWait - time.Since(began)):
	}
	return false
}

// unread reports whether this process has admitted as many requests of a counter as it may before
// the first read: other processes may have used all of the limit. It has also admitted ahead
// requests that are not counted yet.
func (s *shard) unread(h *slab.Hot, slots []ratelimit.Slot, ahead int64) bool {
	if h.Flags&(slab.Unsynced|slab.Pooled) != slab.Unsynced || !s.all.leasing.on {
		return false
	}
	pending, unclaimed := ratelimit.SumUnflushed(slots)
	return pending+unclaimed+ahead >= Unread
}

// firstRead requests the first reads of the keys. It returns a channel that is closed after one of
// them, or nil if the request need not wait.
func (q *request) firstRead(ms int64, ahead *[3]int64) (read chan struct{}) {
	defer q.unlock()
	if !q.lock() {
		return nil
	}
	for i := range q.parts {
		p := &q.parts[i]
		if p.s == nil {
			continue
		}
		if first := p.firstRead(ms, ahead[i]); first != nil {
			read = first
			p.refresh(&q.c.queue)
		}
	}
	return read
}

// firstRead returns a channel that is closed after the first read of the key, or nil if the next
// request need not wait for it.
func (p *part) firstRead(ms, ahead int64) chan struct{} {
	s := p.s
	for num, r := range p.applied() {
		if h := s.HotOf(num); r.Leases || !s.unread(h, s.Slots(h, r), ahead) || s.cutOff(num, r, ms) || s.all.leasing.closing.Load() {
			continue
		}
		if s.reading[num] == nil {
			put(&s.reading, num, make(chan struct{}))
		}
		return s.reading[num]
	}
	return nil
}

// wasRead ends the waits for the first read of a counter.
func (s *shard) wasRead(num uint32) {
	if read := s.reading[num]; read != nil {
		close(read)
		delete(s.reading, num)
	}
}

// takeStrict is decide for a list with a strict limit. If the request lacks only permits,
// takeStrict returns a waiter for it, or records the demand so that the next request finds permits.
// If an admitted request was delayed into a later frame, takeStrict returns a waiter that is
// already decided.
func (q *request) takeStrict(came int64, d *ratelimit.Decision, wait bool) (w *waiter, wake bool) {
	ms, own := came, &q.parts[0]
	if wait {
		ms = q.c.queue.present(came)
	}
	longest, wake := q.decideStrict(ms, d)
	if d.Outcome == ratelimit.Denied && longest == 0 {
		return nil, wake
	}
	own.arrive(ms, q.n)
	switch {
	case d.Outcome == ratelimit.Allowed && own.ls.SameFrames(came, ms):
		return nil, wake
	case d.Outcome == ratelimit.Denied && (!wait || own.s.waiting[own.first].full()):
		own.addUnmet(q.n)
		d.LackPermits()
		return nil, wake
	}
	w = &waiter{request: *q, since: ms, longest: longest, first: own.first, d: *d, done: make(chan struct{})}
	if d.Outcome == ratelimit.Allowed {
		w.decided(ms)
	} else {
		own.s.addWaiter(w, own.ls)
	}
	return w, wake
}

// decideStrict is decide for a list with a strict limit. If the request lacks only permits, longest
// is how long it may wait behind the requests already waiting. Otherwise longest is 0. Requests
// never wait for room under shared limits.
func (q *request) decideStrict(ms int64, d *ratelimit.Decision) (longest time.Duration, wake bool) {
	room, wake := q.decide(ms, d, true)
	if !room || d.Outcome == ratelimit.Allowed {
		return 0, wake
	}
	longest = q.parts[0].lacking(ms, q.n, true)
	if longest == 0 && d.RetryAfter == 0 { // requests ahead will use the available room
		d.RetryAfter = ratelimit.LeaseRetry
	}
	return longest, wake
}

// outcome waits until the waiter is decided, or denies it.
func (c *Counters) outcome(ctx context.Context, w *waiter) ratelimit.Decision {
	select {
	case <-w.done:
	case <-time.After(w.longest):
	case <-ctx.Done():
	}
	s := w.parts[0].s
	s.mu.Lock()
	if w.first != 0 {
		s.leave(w)
		w.d.LackPermits()
	}
	s.mu.Unlock()
	if w.d.Outcome == ratelimit.Allowed && ctx.Err() != nil {
		w.refund(w.at, w.at)
		w.d.Outcome = ratelimit.Denied
		w.d.LackPermits()
	}
	return w.d
}

// addWaiter adds a request to the queue of its key.
func (s *shard) addWaiter(w *waiter, ls *ratelimit.Limits) {
	q := s.waiting[w.first]
	if q == nil {
		q = &waitQueue{}
		put(&s.waiting, w.first, q)
	}
	q.waiters = append(q.waiters, w)
	q.count(w, ls, 1)
}

// full reports whether no further request may wait.
func (q *waitQueue) full() bool { return q != nil && len(q.waiters) >= maxWaiters }

// count adds the request to q.n for each limit that counts it, or subtracts it if sign is -1.
func (q *waitQueue) count(w *waiter, ls *ratelimit.Limits, sign int64) {
	skip := ls.Skip(w.grant)
	for i := range ls.Rules {
		if skip>>i&1 == 0 {
			q.n[i] += sign * w.n
		}
	}
}

// serve decides the waiting requests of a key, in order of arrival. A request that still lacks
// permits keeps waiting, and so does every later request under one of the same limits. During the
// call the queue counts as empty, so all permits are available to these requests.
func (s *shard) serve(first uint32, ms int64) {
	q := s.waiting[first]
	if q == nil {
		return
	}
	delete(s.waiting, first)
	ls := ratelimit.LimitsOf(s.HotOf(first).Limits)
	left, lack := &waitQueue{}, uint16(0)
	for _, w := range q.waiters {
		at, applies := max(ms, w.since), ls.Every()&^ls.Skip(w.grant)
		if lack&applies == 0 {
			w.d = ratelimit.Decision{Overridden: w.d.Overridden}
			if s.decideWaiter(w, ls, at) == 0 {
				w.decided(at)
				continue
			}
		}
		lack |= applies
		left.waiters = append(left.waiters, w)
		left.count(w, ls, 1)
	}
	if len(left.waiters) > 0 {
		s.waiting[first] = left
	}
}

// decideWaiter is decideStrict for the first request of the queue.
func (s *shard) decideWaiter(w *waiter, ls *ratelimit.Limits, at int64) (longest time.Duration) {
	own := &w.parts[0]
	own.first, own.ls, own.skip = w.first, ls, ls.Skip(w.grant)
	longest, wake := w.decideStrict(at, &w.d)
	if wake {
		w.c.queue.wake()
	}
	return longest
}

// demand returns how many requests wait for permits of a counter or were denied because it had
// none.
func (s *shard) demand(num uint32) int64 {
	return s.leaseOf(num).unmet + s.queued(num)
}

// queued returns how many waiting requests the limit of a counter counts.
func (s *shard) queued(num uint32) int64 {
	if q := s.waiting[s.FirstOf(num)]; q != nil {
		return q.n[s.HotOf(num).Rule]
	}
	return 0
}

// leave removes an undecided waiter from the queue of its key.
func (s *shard) leave(w *waiter) {
	q := s.waiting[w.first]
	i := slices.Index(q.waiters, w)
	q.waiters = slices.Delete(q.waiters, i, i+1)
	q.count(w, ratelimit.LimitsOf(s.HotOf(w.first).Limits), -1)
	if len(q.waiters) == 0 {
		delete(s.waiting, w.first)
	}
	w.first = 0
}

// abandon denies the waiting requests of a key because its counters are removed.
func (s *shard) abandon(first uint32) {
	q := s.waiting[first]
	if q == nil {
		return
	}
	delete(s.waiting, first)
	for _, w := range q.waiters {
		w.d.LackPermits()
		w.d.Outage = false // the store is not the reason
		w.decided(w.since)
	}
}
