package turns

import (
	"context"
	"time"

	"oauth-server/internal/ratelimit"
)

// serve decides on the first requests of a line, for as long as they pass. The timer of the line calls it.
func (l *Lines) serve(ln *line) {
	for {
		p := l.first(ln)
		if p == nil {
			return // all have gone
		}
		if l.refresh(ln, p) {
			return
		}
		if e, t := l.decideFirst(ln, p); !l.resolve(ln, p, e, &t) {
			return
		}
	}
}

// refresh asks for what other processes have admitted since the latest denial, if there are any, and has the line wait
// for it. It reports whether it does.
func (l *Lines) refresh(ln *line, p *place) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
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

// decideFirst decides on the first request of a line, outside of the lock: a strict limit may wait for permits, but not
// for longer than the request waits, and not for so long that the line does not look for what has changed.
func (l *Lines) decideFirst(ln *line, p *place) (*ratelimit.Effective, Turn) {
	e := p.policy()
	ctx, cancel := context.WithTimeout(context.Background(), min(p.came.Add(e.Wait.Longest).Sub(l.clock()), lookAgain))
	defer cancel()
	return e, l.decide(ctx, ln.key, e)
}

// first is the first request of a line; nil if all have gone.
func (l *Lines) first(ln *line) *place {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(ln.list) == 0 {
		return nil
	}
	return ln.list[0]
}

// lacksPermits reports whether a request was denied for nothing but what the store would have to bring. If it waits
// already, it goes on to wait for that.
func lacksPermits(d *ratelimit.Decision) bool {
	return d.Outcome == ratelimit.Denied && d.Outage && !d.Exceeded()
}

// resolve settles the first request of the line by a decision on it, and reports whether the next one is to be
// decided now.
func (l *Lines) resolve(ln *line, p *place, e *ratelimit.Effective, t *Turn) (next bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.follow(ln, e, t)
	switch {
	case len(ln.list) == 0 || ln.list[0] != p: // it has gone; the next one may come from another source
		if t.Outcome == ratelimit.Allowed {
			l.refund(ln.key, e, t.at)
		}
		return len(ln.list) > 0
	case !waits(&t.Decision) && !lacksPermits(&t.Decision), t.at.Sub(ln.list[0].came) >= e.Wait.Longest:
		l.settle(ln, 0, t.Decision, t.at)
		return len(ln.list) > 0
	}
	ln.denied, ln.mode, ln.fresh = t.Decision, e.Mode, false
	l.prune(ln, e, t.at)
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

// follow removes the requests that the mode in force does not hold. Those that were held and are over the limit
// would have been delayed; those that were not are not there.
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
			l.settle(ln, i, d, t.at)
		}
	}
}

// prune denies the requests whose turn no longer comes in time, because the policy has changed, or other processes
// have admitted more than was known.
func (l *Lines) prune(ln *line, e *ratelimit.Effective, now time.Time) {
	f := l.counters.Forecast(now, ln.key, e)
	for i := 0; i < len(ln.list); {
		turn := f.Next()
		if !e.Waits(ln.key) || turn.Sub(ln.list[i].came) > e.Wait.Longest {
			l.settle(ln, i, ln.refusal(turn.Sub(now)), now)
			continue
		}
		f.Admit()
		i++
	}
	ln.forecast = f
}

// settle ends the wait of a request with a decision.
func (l *Lines) settle(ln *line, i int, d ratelimit.Decision, at time.Time) {
	p := ln.list[i]
	if d.Outcome == ratelimit.Allowed {
		d.Outcome = ratelimit.Delayed
	}
	p.turn.Decision, p.turn.at = d, at
	forecast := ln.forecast
	l.drop(ln, i)
	if d.Outcome == ratelimit.Delayed {
		ln.forecast = forecast // which has counted it
	}
	close(p.decided)
}
