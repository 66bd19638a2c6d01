package ratelimit

import (
	"context"
	"slices"
	"time"
)

// leaseRetry is the least RetryAfter of a request that is denied only because permits did not come.
const leaseRetry = time.Second

// waiter is a request that waits for permits.
type waiter struct {
	n       int64
	longest time.Duration // that it waits
	first   uint32        // the first counter of its key; 0: no longer among those that wait
	at      int64         // when it was decided
	d       Decision
	total   *totalOf // of the client; nil: it has none
	decided bool
	done    chan struct{} // closed with the decision
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
	ls := d.prepare(&k, e)
	if ls == nil {
		return d, 0
	}
	var w *waiter
	if e.Total == nil {
		w = c.take(millis(now), k, ls, max(n, 1), &d, true)
	} else {
		w = c.takeBoth(millis(now), k, clientID, ls, e.Total, max(n, 1), &d, true)
	}
	if w != nil {
		began := time.Now()
		s, _ := c.lookup(k)
		d = c.outcome(ctx, s, w, ls)
		waited = time.Since(began)
		if d.Outcome == Allowed { // its frame is that of the decision, this goroutine may run later
			waited = time.Duration(w.at-millis(now)) * time.Millisecond
		}
	}
	d.conclude(e)
	return d, waited
}

// prepare returns the limits of a key, which it bounds; nil if its requests are not counted, which
// is then the decision. [Counters.Take] has the same written out: the call would cost it a sixth.
func (d *Decision) prepare(k *Key, e *Effective) (ls *Limits) {
	switch {
	case e.Mode == Off:
		d.Outcome = Passed
		return nil
	case e.Trusted:
		d.Outcome = Trusted
		return nil
	}
	*k = k.bounded()
	ls = e.list(*k)
	if e.overrides != nil {
		ls, d.Overridden = e.override(*k)
	}
	return ls
}

// outcome waits for the decision on a waiter.
func (c *Counters) outcome(ctx context.Context, s *shard, w *waiter, ls *Limits) Decision {
	timer := time.NewTimer(w.longest)
	defer timer.Stop()
	select {
	case <-w.done:
	case <-timer.C:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !w.decided:
		w.d.lackPermits()
	case w.d.Outcome == Allowed && ctx.Err() != nil:
		if w.first != 0 {
			s.giveBack(w.first, ls, w.at, w.n)
			if s.requeue(&c.queue, w.first, ls) {
				c.queue.wake()
			}
			if w.total != nil {
				w.total.giveBack(w.at, w.n)
			}
		}
		w.d.Outcome = Denied
		w.d.lackPermits()
	}
	s.leave(w)
	return w.d
}

// lackPermits completes the denial of a request for which no permits came. It is over no limit.
func (d *Decision) lackPermits() {
	d.RetryAfter, d.Outage, d.exceeded = max(d.RetryAfter, leaseRetry), true, 0
}

// takeStrict is decide for a list with a strict limit. If the request is denied for nothing but
// permits, it returns a waiter for it, or lets the next request find permits.
func (s *shard) takeStrict(first uint32, ls *Limits, ms, n int64, d *Decision, wait bool) *waiter {
	s.serve(first, ms)
	s.decide(first, ls, ms, n, d)
	if d.Outcome == Denied && !s.lacking(first, ls, ms, n, s.queued(first)) {
		return nil
	}
	return s.await(first, ls, ms, n, d, wait)
}

// await records n requests of a list with a strict limit that were admitted or lack permits, and returns a
// waiter for these, or lets the next request find permits.
func (s *shard) await(first uint32, ls *Limits, ms, n int64, d *Decision, wait bool) *waiter {
	s.arrive(first, ls, ms, n)
	if d.Outcome == Allowed {
		return nil
	}
	if !wait {
		s.addUnmet(first, ls, n)
		d.lackPermits()
		return nil
	}
	w := &waiter{n: n, first: first, d: *d, done: make(chan struct{})}
	for i := range ls.rules {
		w.longest = max(w.longest, ls.rules[i].LeaseWait)
	}
	if s.waiting == nil {
		s.waiting = map[uint32][]*waiter{}
	}
	s.waiting[first] = append(s.waiting[first], w)
	return w
}

// serve decides on the requests of a key that wait and can be decided, in the order in which they
// came.
func (s *shard) serve(first uint32, ms int64) {
	list := s.waiting[first]
	if len(list) == 0 {
		return
	}
	ls := limitsOf(s.hotOf(first).limits)
	var ahead int64
	for _, w := range list {
		if w.decided {
			continue
		}
		d, room := Decision{Overridden: w.d.Overridden}, true
		if w.total == nil {
			s.decide(first, ls, ms, w.n, &d)
		} else {
			room = (&side{s, first, ls}).decideAgain(w.total, ms, w.n, &d)
		}
		w.d = d
		if d.Outcome == Denied && room && s.lacking(first, ls, ms, w.n, ahead) {
			ahead += w.n
			continue
		}
		w.decided, w.at = true, ms
		close(w.done)
	}
}

// demand returns how many requests wait for permits of a counter, or were denied for want of them.
func (s *shard) demand(num uint32) int64 {
	return s.leaseOf(num).unmet + s.queued(s.firstOf(num))
}

// queued returns how many requests of a key wait.
func (s *shard) queued(first uint32) (n int64) {
	for _, w := range s.waiting[first] {
		if !w.decided {
			n += w.n
		}
	}
	return n
}

// leave removes a waiter from its key.
func (s *shard) leave(w *waiter) {
	if w.first == 0 {
		return
	}
	list := s.waiting[w.first]
	if i := slices.Index(list, w); i >= 0 {
		s.waiting[w.first] = slices.Delete(list, i, i+1)
	}
	if len(s.waiting[w.first]) == 0 {
		delete(s.waiting, w.first)
	}
	w.first = 0
}

// abandon denies the requests that wait for a key whose counters go away or get other limits.
func (s *shard) abandon(first uint32) {
	for _, w := range s.waiting[first] {
		w.first = 0
		if !w.decided {
			w.decided = true
			w.d.lackPermits()
			close(w.done)
		}
	}
	delete(s.waiting, first)
}

// giveBack takes back n requests of a key that were counted at the time at, and reports whether
// their frames were still there.
func (s *shard) giveBack(first uint32, ls *Limits, at, n int64) (done bool) {
	num := first
	for i := range ls.rules {
		r := &ls.rules[i]
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
		num = s.hotOf(num).next
	}
	return done
}
