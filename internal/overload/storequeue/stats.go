package storequeue

import (
	"slices"
	"time"

	"oauth-server/internal/overload"
	"oauth-server/internal/ratelimit"
)

// Stats is the state of a queue, for metrics and readiness.
type Stats struct {
	Mode     ratelimit.Mode
	Limit    int // current limit of concurrent calls
	InFlight int // calls that hold a pass, or would in dry-run mode
	Queued   int
	// Refusing is how long calls have been refused, or would have been in dry-run mode. 0: no calls
	// are refused.
	Refusing time.Duration
	// UpTo is the highest criticality of the calls refused in the last two seconds. Unset: no calls
	// were refused.
	UpTo  ratelimit.Criticality
	Calls Calls // since the start
}

// Calls counts calls by criticality, from sheddable up, and outcome.
type Calls [overload.Criticalities][overload.Outcomes]uint64

func (c *Calls) add(r overload.Rank, o overload.Outcome) {
	c[r.Criticality()-ratelimit.Sheddable][o]++
}

// Of returns the number of calls with an outcome.
func (c *Calls) Of(o overload.Outcome) (n uint64) {
	for i := range c {
		n += c[i][o]
	}
	return n
}

// calm is the time without refusals after which a queue counts as not refusing.
const calm = 2 * time.Second

// refusals holds the times of refusals.
type refusals struct {
	first, last time.Time
	of          [overload.Criticalities]time.Time // the last of each criticality, from sheddable up
}

// add records a refusal and returns how long calls have been refused.
func (r *refusals) add(now time.Time, c ratelimit.Criticality) time.Duration {
	if r.since(now) == 0 {
		r.first = now
	}
	r.last, r.of[c-ratelimit.Sheddable] = now, now
	return now.Sub(r.first)
}

// upTo returns the highest criticality of recently refused calls, or unset.
func (r *refusals) upTo(now time.Time) ratelimit.Criticality {
	for c := ratelimit.CriticalPlus; c >= ratelimit.Sheddable; c-- {
		if at := r.of[c-ratelimit.Sheddable]; !at.IsZero() && now.Sub(at) <= calm {
			return c
		}
	}
	return ratelimit.CriticalityUnset
}

// since returns how long calls have been refused, or 0.
func (r *refusals) since(now time.Time) time.Duration {
	if r.last.IsZero() || now.Sub(r.last) > calm {
		return 0
	}
	return max(now.Sub(r.first), 1)
}

// Stats returns the state of the queue.
func (l *Queue) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for _, w := range slices.Clone(l.queue.waiting) {
		if w.ghost && l.late(w) {
			l.queue.remove(w)
			_ = l.refuse(w)
		}
	}
	return Stats{
		Mode: l.mode, Limit: l.limiter.Limit(), InFlight: l.limiter.Inflight(), Queued: len(l.queue.waiting),
		Refusing: l.refusals.since(now), UpTo: l.refusals.upTo(now), Calls: l.calls,
	}
}
