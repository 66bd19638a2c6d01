package limiter

import (
	"context"
	"time"

	"oauth-server/internal/ratelimit"
)

// Tried is the decision that a candidate would have made: its outcome, as in dry-run. The zero
// Tried, with the outcome Passed, means that no candidate applied to the request.
type Tried struct {
	Outcome ratelimit.Outcome
	Limit   string    // name of the limit that the request is over, or empty; empty for a ban too
	Since   time.Time // start of the trial, which identifies the candidate
}

// tryCandidate decides on the request under a candidate, if there is one for its key and an
// observer. It does so whether or not the limits in force admit the request. It never denies or
// delays the request. Candidate limits for users do not apply to a user with an override, because
// the override stays when the limits of all other users change.
func (l *Limiter) tryCandidate(ctx context.Context, now time.Time, policies Policies, r *Request) (t Tried) {
	trial, ok := policies.Trial(r.Key.ClientID)
	if !ok || l.Observe == nil {
		return t
	}
	live := policies.For(r.Key.ClientID)
	k, tried, concerned := trial.Of(r.Key.Username, live.HasOverride(r.Key))
	if !concerned {
		return t
	}
	tried = trial.Over(live, tried)
	t.Since = trial.Since
	if l.Bans != nil && l.Bans.Tried(now, k, tried, trial.Since) {
		t.Outcome = ratelimit.WouldBan
		return t
	}
	d := l.candidateDecision(ctx, now, r, k, tried)
	if r.Reuse != nil && r.Reuse.Tried(tried, &trial, d.Outcome == ratelimit.WouldDeny) {
		d.Outcome = ratelimit.WouldReuse
	}
	if l.Bans != nil && !r.Unproven && d.ThroughLimit() { // like countDenial
		l.Bans.TriedDenied(now, k, tried, trial.Since)
	}
	if t.Outcome = d.Outcome; d.Outcome != ratelimit.Allowed {
		t.Limit = bindingName(&d)
	}
	return t
}

// candidateDecision returns the decision of the candidate's limits. Over them, the request would wait
// as the candidate specifies or, if it specifies nothing, as the policy in force does.
func (l *Limiter) candidateDecision(ctx context.Context, now time.Time, r *Request, k ratelimit.Key, tried *ratelimit.Effective) ratelimit.Decision {
	of := r.of(tried)
	if !of.Waits(k) {
		return l.Counters.Take(now, k, of, 1)
	}
	return l.queues.Take(ctx, k, func() *ratelimit.Effective { return of }).Decision
}
