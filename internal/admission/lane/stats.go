package lane

import (
	"time"

	"oauth-server/internal/ratelimit"
)

// Stats are the state of a lane, for metrics and readiness.
type Stats struct {
	Mode     ratelimit.Mode
	Limit    int // calls at once, at the moment
	InFlight int // calls that hold a pass; in dry-run, that would
	Queued   int
	// Longest is how long the call waits that has waited longest.
	Longest time.Duration
	// Refusing is for how long calls have been refused, or in dry-run would have been; 0 if none is.
	Refusing time.Duration
	// Calls since the start: those that were let in, of which some waited, and the others.
	Admitted, Waited, Refused, WouldRefuse, Abandoned uint64
}

// calm is how long nothing must be refused for a lane not to be refusing any more.
const calm = 2 * time.Second

// refusals is when calls were refused.
type refusals struct{ first, last time.Time }

// add notes a refusal, and returns for how long calls have been refused.
func (r *refusals) add(now time.Time) time.Duration {
	if r.since(now) == 0 {
		r.first = now
	}
	r.last = now
	return now.Sub(r.first)
}

// since returns for how long calls have been refused; 0 if none is.
func (r *refusals) since(now time.Time) time.Duration {
	if r.last.IsZero() || now.Sub(r.last) > calm {
		return 0
	}
	return max(now.Sub(r.first), 1)
}

// Stats returns the state.
func (l *Lane) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for w := range l.queue.all() {
		if w.ghost && l.late(w) {
			l.queue.remove(w)
			_ = l.refuse(true)
		}
	}
	s := l.counts
	s.Mode, s.Limit, s.InFlight, s.Queued = l.mode, l.limiter.Limit(), l.limiter.Inflight(), l.queue.n
	s.Refusing = l.refusals.since(now)
	for w := range l.queue.all() {
		s.Longest = max(s.Longest, now.Sub(w.joined))
	}
	return s
}
