package ratelimit

import (
	"context"
	"slices"
	"time"
)

// leaseRetry is the least RetryAfter of a request that is denied only because permits did not come.
const leaseRetry = time.Second

// maxWaiters is how many requests wait for permits of one key. The lock of its shard is held while
// they are decided.
const maxWaiters = 1024

// line is the requests of a key that wait for permits, in the order in which they came.
type line struct {
	waiters []*waiter
	n       [MaxLimits]int64 // requests of all of them, for each limit of the key that counts them
}

// waiter is a request that waits for permits.
type waiter struct {
	n       int64
	since   int64         // when it came
	longest time.Duration // that it waits
	first   uint32        // the first counter of its key; 0: it is decided
	at      int64         // when it was decided
	d       Decision
	request *request
	done    chan struct{} // closed with the decision
}

// decided ends the wait.
func (w *waiter) decided(at int64) {
	w.first, w.at = 0, at
	close(w.done)
}

// Await is [Counters.Take] for callers that can wait. If a strict limit lacks nothing but permits,
// it waits until the next exchange has brought some, at most the LeaseWait of the limit. That is the
// only wait of a decision; all others are made at once. It returns the decision and how long it
// waited; 0 if it did not.
//
// A request whose context ends while it waits is denied, and takes no permit. The time that a
// request is admitted at, to the millisecond, is now plus the wait: see [Counters.Refund].
func (c *Counters) Await(ctx context.Context, now time.Time, k Key, e *Effective, n int64) (d Decision, waited time.Duration) {
	clientID := k.ClientID
	ls, counts := d.prepare(&k, e)
	if !counts {
		return d, 0
	}
	came := millis(now)
	if e.simple(ls) {
		c.take(came, k, ls, max(n, 1), &d)
	} else if w := c.takeMore(came, k, clientID, ls, e, max(n, 1), &d, true); w != nil {
		began := time.Now()
		d = c.outcome(ctx, w)
		waited = time.Since(began)
		if d.Outcome == Allowed { // its frame is that of the decision, this goroutine may run later
			waited = time.Duration(w.at-came) * time.Millisecond
		}
	}
	d.conclude(e)
	return d, waited
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

// prepare returns the limits of a key, which it bounds; it reports false if its requests are not counted, which
// is then the decision. [Counters.Take] has the same written out: the call would cost it a sixth.
func (d *Decision) prepare(k *Key, e *Effective) (ls *Limits, counts bool) {
	switch {
	case e.Mode == Off:
		d.Outcome = Passed
		return nil, false
	case e.Trusted:
		d.Outcome = Trusted
		return nil, false
	}
	*k = k.bounded()
	ls = e.list(*k)
	if e.overrides != nil {
		ls, d.Overridden = e.override(*k)
	}
	return ls, true
}

// outcome waits for the decision on a waiter.
func (c *Counters) outcome(ctx context.Context, w *waiter) Decision {
	timer := time.NewTimer(w.longest)
	defer timer.Stop()
	select {
	case <-w.done:
	case <-timer.C:
	case <-ctx.Done():
	}
	s, q := w.request.own.shard, w.request
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case w.first != 0:
		s.leave(w)
		w.d.lackPermits()
	case w.d.Outcome == Allowed && ctx.Err() != nil:
		if first := s.findUnder(q.own.hash, w.d.limits); first != 0 {
			mine := side{s, first, w.d.limits, w.d.skip}
			mine.refund(&c.queue, w.at, w.at, w.n)
		}
		q.refundShared(w.at, w.n)
		w.d.Outcome = Denied
		w.d.lackPermits()
	}
	return w.d
}

// lackPermits completes the denial of a request for which no permits came. It is over no limit.
func (d *Decision) lackPermits() {
	d.RetryAfter, d.Outage, d.exceeded = max(d.RetryAfter, leaseRetry), true, 0
}

// lineUp has a request wait for permits of its key.
func (s *shard) lineUp(w *waiter, ls *Limits) {
	if s.waiting == nil {
		s.waiting = map[uint32]*line{}
	}
	q := s.waiting[w.first]
	if q == nil {
		q = &line{}
		s.waiting[w.first] = q
	}
	q.waiters = append(q.waiters, w)
	q.count(w, ls, 1)
}

// count adds a request to those that wait for each limit that counts it, or takes it away.
func (q *line) count(w *waiter, ls *Limits, sign int64) {
	skip := ls.skip(w.request.grant)
	for i := range ls.rules {
		if skip>>i&1 == 0 {
			q.n[i] += sign * w.n
		}
	}
}

// waitingFor returns how many waiters a key has.
func (s *shard) waitingFor(first uint32) int {
	if q := s.waiting[first]; q != nil {
		return len(q.waiters)
	}
	return 0
}

// serve decides on the requests of a key that wait, in the order in which they came. One that still lacks permits goes on
// to wait, and so do all behind it that a limit of it counts too. Meanwhile nothing waits, so all permits are for them.
func (s *shard) serve(first uint32, ms int64) {
	q := s.waiting[first]
	if q == nil {
		return
	}
	delete(s.waiting, first)
	ls := limitsOf(s.hotOf(first).limits)
	left, lack := &line{}, uint16(0)
	for _, w := range q.waiters {
		at, applies := max(ms, w.since), ls.every()&^ls.skip(w.request.grant)
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

// decideWaiter is side.decideStrict for a request that is the first to wait.
func (s *shard) decideWaiter(w *waiter, ls *Limits, at int64) (longest time.Duration) {
	mine := side{s, w.first, ls, ls.skip(w.request.grant)}
	longest, wake := mine.decideStrict(w.request, at, w.n, &w.d)
	if wake {
		w.request.c.queue.wake()
	}
	return longest
}

// demand returns how many requests wait for permits of a counter, or were denied for want of them.
func (s *shard) demand(num uint32) int64 {
	return s.leaseOf(num).unmet + s.queued(num)
}

// queued returns how many requests wait that the limit of a counter counts.
func (s *shard) queued(num uint32) int64 {
	if q := s.waiting[s.firstOf(num)]; q != nil {
		return q.n[s.hotOf(num).rule]
	}
	return 0
}

// leave removes a waiter that is not decided from its key.
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

// abandon denies the requests that wait for a key whose counters go away.
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

// giveBack takes back n requests of a key that were counted at the time at, and reports whether
// their frames were still there.
func (o *side) giveBack(at, n int64) (done bool) {
	s := o.s
	for num, r := range o.applied() {
		f := s.frames(num, r)
		j, there := r.index(f.start, at)
		switch {
		case !there || f.slots[j].total(1) < n:
		case !s.leased(num, r) || j > 1:
			f.slots[j].count(-n)
			done = true
		case j == 1: // nothing was admitted in slot 0, the next frame
			s.leaseOf(num).held[1] += n
			done = true
		}
	}
	return done
}
