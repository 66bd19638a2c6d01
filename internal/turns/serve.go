package turns

import (
	"context"

	"oauth-server/internal/ratelimit"
)

// serve decides on the first requests of a queue for as long as they pass. The timer of the queue
// calls it.
func (l *Lines) serve(ln *line) {
	for p := l.begin(ln); p != nil; {
		e, t := l.decideFirst(ln, p)
		p = l.resolve(ln, p, e, &t)
	}
}

// begin returns the first request of a queue if it is to be decided now. It returns nil if all
// requests have left, if another goroutine is deciding, or if the queue waits for the counts of
// other processes.
func (l *Lines) begin(ln *line) *place {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case ln.serving:
		ln.again = true
		return nil
	case len(ln.list) == 0 || l.refresh(ln, ln.list[0]):
		return nil
	}
	ln.serving = true
	return ln.list[0]
}

// refresh requests the counts of other processes since the latest denial, and sets the timer to wait
// for them. It returns false if they were already requested, or if there is no other process or no
// time to wait.
func (l *Lines) refresh(ln *line, p *place) bool {
	if ln.fresh || ln.forecast == nil || ln.forecast.Spread() == 0 {
		return false
	}
	ln.fresh = true
	e, wait := p.policy(), l.counters.RefreshTime()
	if l.clock().Add(wait).After(p.came.Add(e.Wait.Longest)) || !l.counters.Refresh(ln.key, e) {
		return false
	}
	ln.timer.Reset(wait)
	return true
}

// decideFirst decides on the first request of a queue, without holding the lock, because a strict
// limit may wait for permits. That wait is bounded by the remaining wait of the request, and by
// lookAgain, so that the queue keeps checking for changes.
func (l *Lines) decideFirst(ln *line, p *place) (*ratelimit.Effective, Turn) {
	e := p.policy()
	ctx, cancel := context.WithTimeout(context.Background(), min(p.came.Add(e.Wait.Longest).Sub(l.clock()), lookAgain))
	defer cancel()
	return e, l.Decide(ctx, ln.key, e)
}

// lacksPermits reports whether a request was denied only because the store has not provided
// permits. A request that already waits keeps waiting for them.
func lacksPermits(d *ratelimit.Decision) bool {
	return d.Outcome == ratelimit.Denied && d.Outage && !d.Exceeded()
}

// resolve applies a decision on the first request of the queue. It returns the next request if that
// is to be decided now.
func (l *Lines) resolve(ln *line, p *place, e *ratelimit.Effective, t *Turn) (next *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.settled(ln, p, e, t) && len(ln.list) > 0 {
		return ln.list[0]
	}
	ln.serving = false
	return nil
}

// settled is resolve with the lock held. It reports whether to decide the next request now, if
// there is one.
func (l *Lines) settled(ln *line, p *place, e *ratelimit.Effective, t *Turn) bool {
	l.follow(ln, e, t)
	switch {
	case len(ln.list) == 0 || ln.list[0] != p: // it has left; the next one may have another source
		if t.Outcome == ratelimit.Allowed {
			l.refund(ln.key, t)
		}
		return true
	case !waits(&t.Decision) && !lacksPermits(&t.Decision), t.at.Sub(p.came) >= e.Wait.Longest:
		l.settle(ln, 0, t.Decision, t)
		return true
	}
	ln.denied, ln.mode, ln.fresh = t.Decision, e.Mode, false
	l.prune(ln, e, t)
	if len(ln.list) == 0 {
		return false
	}
	if ln.again {
		ln.again = false
		return true
	}
	now := l.clock()
	ln.timer.Reset(l.until(ln, t.at.Add(ln.denied.RetryAfter).Sub(now), ln.list[0].came.Add(e.Wait.Longest).Sub(now)))
	return false
}

// follow removes requests that do not fit the present mode. Waiting requests that are over the
// limit become WouldDelay in dry-run. Virtual requests are dropped under enforcement.
func (l *Lines) follow(ln *line, e *ratelimit.Effective, t *Turn) {
	dry := e.Mode == ratelimit.DryRun
	for i := len(ln.list) - 1; i >= 0; i-- {
		switch p := ln.list[i]; {
		case p.virtual == dry:
		case p.virtual:
			l.drop(ln, i)
		case waits(&t.Decision):
			d := t.Decision
			d.Outcome, d.RetryAfter = ratelimit.WouldDelay, 0
			l.settle(ln, i, d, t)
		}
	}
}

// prune denies requests that can no longer pass in time, because the policy has changed or other
// processes have admitted more than was known.
func (l *Lines) prune(ln *line, e *ratelimit.Effective, t *Turn) {
	f := l.counters.Forecast(t.at, ln.key, e)
	for i := 0; i < len(ln.list); {
		turn := f.Next()
		if !e.Waits(ln.key) || turn.Sub(ln.list[i].came) > e.Wait.Longest {
			l.settle(ln, i, ln.refusal(turn.Sub(t.at)), t)
			continue
		}
		f.Admit()
		i++
	}
	ln.forecast = f
}

// settle ends the wait of a request with a decision.
func (l *Lines) settle(ln *line, i int, d ratelimit.Decision, by *Turn) {
	p := ln.list[i]
	if d.Outcome == ratelimit.Allowed {
		d.Outcome = ratelimit.Delayed
	}
	p.turn.Decision, p.turn.at, p.turn.under = d, by.at, by.under
	forecast := ln.forecast
	l.drop(ln, i)
	if d.Outcome == ratelimit.Delayed {
		ln.forecast = forecast // it still counts the request
	}
	if !p.virtual {
		p.decided()
	}
}
