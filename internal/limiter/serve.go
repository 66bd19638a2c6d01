package limiter

import (
	"context"

	"oauth-server/internal/ratelimit"
)

// serve decides on the first requests of a queue for as long as they pass. The timer of the queue
// calls it.
func (l *Queues) serve(q *queue) {
	for p := l.begin(q); p != nil; {
		e, t := l.decideFirst(q, p)
		p = l.resolve(q, p, e, &t)
	}
}

// begin returns the first request of a queue if it is to be decided now. It returns nil if all
// requests have left, if another goroutine is deciding, or if the queue waits for the counts of
// other processes.
func (l *Queues) begin(q *queue) *place {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case q.serving:
		q.again = true
		return nil
	case len(q.list) == 0 || l.refresh(q, q.list[0]):
		return nil
	}
	q.serving = true
	return q.list[0]
}

// refresh requests the counts of other processes since the latest denial, and sets the timer to wait
// for them. It returns false if they were already requested, or if there is no other process or no
// time to wait.
func (l *Queues) refresh(q *queue, p *place) bool {
	if q.fresh || q.forecast == nil || q.forecast.Spread() == 0 {
		return false
	}
	q.fresh = true
	e, wait := p.policy(), l.counters.RefreshTime()
	if l.clock().Add(wait).After(p.came.Add(e.Wait.Longest)) || !l.counters.Refresh(q.key, e) {
		return false
	}
	q.timer.Reset(wait)
	return true
}

// decideFirst decides on the first request of a queue, without holding the lock, because a strict
// limit may wait for permits. That wait is bounded by the remaining wait of the request, and by
// lookAgain, so that the queue keeps checking for changes.
func (l *Queues) decideFirst(q *queue, p *place) (*ratelimit.Effective, Admission) {
	e := p.policy()
	ctx, cancel := context.WithTimeout(context.Background(), min(p.came.Add(e.Wait.Longest).Sub(l.clock()), lookAgain)) //nolint:forbidigo // the queue is served for all of its requests
	defer cancel()
	return e, l.Decide(ctx, q.key, e)
}

// lacksPermits reports whether a request was denied only because the store has not provided
// permits. A request that already waits keeps waiting for them.
func lacksPermits(d *ratelimit.Decision) bool {
	return d.Outcome == ratelimit.Denied && d.Outage && !d.Exceeded()
}

// resolve applies a decision on the first request of the queue. It returns the next request if that
// is to be decided now.
func (l *Queues) resolve(q *queue, p *place, e *ratelimit.Effective, t *Admission) (next *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.settled(q, p, e, t) && len(q.list) > 0 {
		return q.list[0]
	}
	q.serving = false
	return nil
}

// settled is resolve with the lock held. It reports whether to decide the next request now, if
// there is one.
func (l *Queues) settled(q *queue, p *place, e *ratelimit.Effective, t *Admission) bool {
	l.follow(q, e, t)
	switch {
	case len(q.list) == 0 || q.list[0] != p: // it has left; the next one may have another source
		if t.Outcome == ratelimit.Allowed {
			l.refund(q.key, t)
		}
		return true
	case !waits(&t.Decision) && !lacksPermits(&t.Decision), t.at.Sub(p.came) >= e.Wait.Longest:
		l.settle(q, 0, t.Decision, t)
		return true
	}
	q.denied, q.mode, q.fresh = t.Decision, e.Mode, false
	l.prune(q, e, t)
	if len(q.list) == 0 {
		return false
	}
	if q.again {
		q.again = false
		return true
	}
	now := l.clock()
	q.timer.Reset(l.until(q, t.at.Add(q.denied.RetryAfter).Sub(now), q.list[0].came.Add(e.Wait.Longest).Sub(now)))
	return false
}

// follow removes requests that do not fit the present mode. Waiting requests that are over the
// limit become WouldDelay in dry-run. Virtual requests are dropped under enforcement.
func (l *Queues) follow(q *queue, e *ratelimit.Effective, t *Admission) {
	dry := e.Mode == ratelimit.DryRun
	for i := len(q.list) - 1; i >= 0; i-- {
		switch p := q.list[i]; {
		case p.virtual == dry:
		case p.virtual:
			l.drop(q, i)
		case waits(&t.Decision):
			d := t.Decision
			d.Outcome, d.RetryAfter = ratelimit.WouldDelay, 0
			l.settle(q, i, d, t)
		}
	}
}

// prune denies requests that can no longer pass in time, because the policy has changed or other
// processes have admitted more than was known.
func (l *Queues) prune(q *queue, e *ratelimit.Effective, t *Admission) {
	f := l.counters.Forecast(t.at, q.key, e)
	for i := 0; i < len(q.list); {
		pass := f.Next()
		if !e.Waits(q.key) || pass.Sub(q.list[i].came) > e.Wait.Longest {
			l.settle(q, i, q.refusal(pass.Sub(t.at)), t)
			continue
		}
		f.Admit()
		i++
	}
	q.forecast = f
}

// settle ends the wait of a request with a decision.
func (l *Queues) settle(q *queue, i int, d ratelimit.Decision, by *Admission) {
	p := q.list[i]
	if d.Outcome == ratelimit.Allowed {
		d.Outcome = ratelimit.Delayed
	}
	p.result.Decision, p.result.at, p.result.under = d, by.at, by.under
	forecast := q.forecast
	l.drop(q, i)
	if d.Outcome == ratelimit.Delayed {
		q.forecast = forecast // it still counts the request
	}
	if !p.virtual {
		p.decided()
	}
}
