package lane

import (
	"time"

	"oauth-server/internal/admission"
	"oauth-server/internal/ratelimit"
)

// Stats are the state of a lane, for metrics and readiness.
type Stats struct {
	Mode     ratelimit.Mode
	Limit    int // calls at once, at the moment
	InFlight int // calls that hold a pass; in dry-run, that would
	Queued   int
	// Refusing is for how long calls have been refused, or in dry-run would have been; 0 if none is.
	Refusing time.Duration
	// UpTo is the highest criticality of those that were refused in the last two seconds; none if none was.
	UpTo  ratelimit.Criticality
	Calls Calls // since the start
}

// Calls are numbers of calls by criticality, from sheddable on, and outcome.
type Calls [admission.Criticalities][admission.Outcomes]uint64

func (c *Calls) add(r admission.Rank, o admission.Outcome) {
	c[r.Criticality()-ratelimit.Sheddable][o]++
}

// Of returns how many calls had an outcome.
func (c *Calls) Of(o admission.Outcome) (n uint64) {
	for i := range c {
		n += c[i][o]
	}
	return n
}

// calm is how long nothing must be refused for a lane not to be refusing any more.
const calm = 2 * time.Second

// refusals is when calls were refused.
type refusals struct {
	first, last time.Time
	of          [admission.Criticalities]time.Time // the last of each criticality, from sheddable on
}

// add notes a refusal, and returns for how long calls have been refused.
func (r *refusals) add(now time.Time, c ratelimit.Criticality) time.Duration {
	if r.since(now) == 0 {
		r.first = now
	}
	r.last, r.of[c-ratelimit.Sheddable] = now, now
	return now.Sub(r.first)
}

// upTo returns the highest criticality of which calls are refused; none if none is.
func (r *refusals) upTo(now time.Time) ratelimit.Criticality {
	for c := ratelimit.CriticalPlus; c >= ratelimit.Sheddable; c-- {
		if at := r.of[c-ratelimit.Sheddable]; !at.IsZero() && now.Sub(at) <= calm {
			return c
		}
	}
	return ratelimit.CriticalityUnset
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
			_ = l.refuse(w)
		}
	}
	return Stats{
		Mode: l.mode, Limit: l.limiter.Limit(), InFlight: l.limiter.Inflight(), Queued: l.queue.n,
		Refusing: l.refusals.since(now), UpTo: l.refusals.upTo(now), Calls: l.calls,
	}
}
