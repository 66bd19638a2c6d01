package ratelimit

import (
	"context"
	"slices"
	"time"
)

// leaseRetry is the minimum RetryAfter of a request that is denied only because no permits arrived.
const leaseRetry = time.Second

// maxWaiters bounds the requests of one key that wait for permits, because the shard stays locked
// while all of them are decided.
const maxWaiters = 1024

// waitQueue has the requests of one key that wait for permits, in order of arrival.
type waitQueue struct {
	waiters []*waiter
	n       [MaxLimits]int64 // waiting requests under each limit of the key that counts them
}

// waiter is a request that waits for permits.
type waiter struct {
	request
	since   int64         // when it arrived
	longest time.Duration // longest wait
	first   uint32        // first counter of its key; 0: it is decided
	at      int64         // when it was decided
	d       Decision
	done    chan struct{} // closed when d is final
}

// decided ends the wait.
func (w *waiter) decided(at int64) {
	w.first, w.at = 0, at
	close(w.done)
}

// Await is [Counters.Take] for callers that can wait. If a request under a strict limit lacks only
// permits, Await waits until the next exchange brings some, but at most the LeaseWait of the limit.
// This is the only case in which a decision waits. Await returns the decision and how long it
// waited, which is 0 for an immediate decision.
//
// If the context ends during the wait, the request is denied and takes no permit. A request is
// admitted at the time now plus the wait, to the millisecond: see [Counters.Refund].
func (c *Counters) Await(ctx context.Context, now time.Time, k Key, e *Effective, n int64) (d Decision, waited time.Duration) {
	came := millis(now)
	w := c.take(came, k, e, n, &d, true)
	if w == nil {
		return d, 0
	}
	began := time.Now()
	d = c.outcome(ctx, w)
	waited = time.Since(began)
	if d.Outcome == Allowed { // at the time of the decision, even if this goroutine runs later
		waited = time.Duration(w.at-came) * time.Millisecond
	}
	d.conclude(e)
	return d, waited
}

// takeStrict is decide for a list with a strict limit. If the request lacks only permits,
// takeStrict returns a waiter for it, or records the demand so that the next request finds permits.
// If an admitted request was delayed into a later frame, takeStrict returns a waiter that is
// already decided.
func (q *request) takeStrict(came int64, d *Decision, wait bool) (w *waiter, wake bool) {
	ms, own := came, &q.parts[0]
	if wait {
		ms = q.c.queue.present(came)
	}
	longest, wake := q.decideStrict(ms, d)
	if d.Outcome == Denied && longest == 0 {
		return nil, wake
	}
	own.arrive(ms, q.n)
	switch {
	case d.Outcome == Allowed && own.ls.sameFrames(came, ms):
		return nil, wake
	case d.Outcome == Denied && (!wait || own.s.waitingFor(own.first) >= maxWaiters):
		own.addUnmet(q.n)
		d.lackPermits()
		return nil, wake
	}
	w = &waiter{request: *q, since: ms, longest: longest, first: own.first, d: *d, done: make(chan struct{})}
	if d.Outcome == Allowed {
		w.decided(ms)
	} else {
		own.s.addWaiter(w, own.ls)
	}
	return w, wake
}

// decideStrict is decide for a list with a strict limit. If the request lacks only permits, longest
// is how long it may wait behind the requests already waiting. Otherwise longest is 0. Requests
// never wait for room under shared limits.
func (q *request) decideStrict(ms int64, d *Decision) (longest time.Duration, wake bool) {
	room, wake := q.decide(ms, d, true)
	if !room || d.Outcome == Allowed {
		return 0, wake
	}
	longest = q.parts[0].lacking(ms, q.n, true)
	if longest == 0 && d.RetryAfter == 0 { // requests ahead will use the available room
		d.RetryAfter = leaseRetry
	}
	return longest, wake
}

// sameFrames reports whether two times are in the same frame of every limit.
func (ls *Limits) sameFrames(a, b int64) bool {
	for i := range ls.rules {
		if r := &ls.rules[i]; r.align(a) != r.align(b) {
			return false
		}
	}
	return true
}

// outcome waits until the waiter is decided, or denies it.
func (c *Counters) outcome(ctx context.Context, w *waiter) Decision {
	timer := time.NewTimer(w.longest)
	defer timer.Stop()
	select {
	case <-w.done:
	case <-timer.C:
	case <-ctx.Done():
	}
	s := w.parts[0].s
	s.mu.Lock()
	if w.first != 0 {
		s.leave(w)
		w.d.lackPermits()
	}
	s.mu.Unlock()
	if w.d.Outcome == Allowed && ctx.Err() != nil {
		w.refund(w.at, w.at)
		w.d.Outcome = Denied
		w.d.lackPermits()
	}
	return w.d
}

// lackPermits marks d as denied because no permits arrived. The request exceeds no limit.
func (d *Decision) lackPermits() {
	d.RetryAfter, d.Outage, d.exceeded = max(d.RetryAfter, leaseRetry), true, 0
}

// addWaiter adds a request to the queue of its key.
func (s *shard) addWaiter(w *waiter, ls *Limits) {
	if s.waiting == nil {
		s.waiting = map[uint32]*waitQueue{}
	}
	q := s.waiting[w.first]
	if q == nil {
		q = &waitQueue{}
		s.waiting[w.first] = q
	}
	q.waiters = append(q.waiters, w)
	q.count(w, ls, 1)
}

// count adds the request to q.n for each limit that counts it, or subtracts it if sign is -1.
func (q *waitQueue) count(w *waiter, ls *Limits, sign int64) {
	skip := ls.skip(w.grant)
	for i := range ls.rules {
		if skip>>i&1 == 0 {
			q.n[i] += sign * w.n
		}
	}
}

// waitingFor returns how many requests of a key wait.
func (s *shard) waitingFor(first uint32) int {
	if q := s.waiting[first]; q != nil {
		return len(q.waiters)
	}
	return 0
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
	ls := limitsOf(s.hotOf(first).limits)
	left, lack := &waitQueue{}, uint16(0)
	for _, w := range q.waiters {
		at, applies := max(ms, w.since), ls.every()&^ls.skip(w.grant)
		if lack&applies == 0 {
			w.d = Decision{Overridden: w.d.Overridden}
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
func (s *shard) decideWaiter(w *waiter, ls *Limits, at int64) (longest time.Duration) {
	own := &w.parts[0]
	own.first, own.ls, own.skip = w.first, ls, ls.skip(w.grant)
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
	if q := s.waiting[s.firstOf(num)]; q != nil {
		return q.n[s.hotOf(num).rule]
	}
	return 0
}

// leave removes an undecided waiter from the queue of its key.
func (s *shard) leave(w *waiter) {
	q := s.waiting[w.first]
	i := slices.Index(q.waiters, w)
	q.waiters = slices.Delete(q.waiters, i, i+1)
	q.count(w, limitsOf(s.hotOf(w.first).limits), -1)
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
		w.d.lackPermits()
		w.d.Outage = false // the store is not the reason
		w.decided(w.since)
	}
}
