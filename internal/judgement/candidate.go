package judgement

import (
	"context"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
)

// Tried is what a candidate would have done with a request: its outcome as in dry-run. The zero Tried, with the
// outcome Passed, is that of a request that concerns no candidate.
type Tried struct {
	Outcome ratelimit.Outcome
	Limit   string    // the name of the limit that the request is over; empty if it is not, and for a ban
	Since   time.Time // since when these limits are tried, which identifies them
}

// tryCandidate decides on the request under limits that are tried out, if there are any for its key and an observer,
// whether or not the limits in force admit it. It never denies a request, nor does it have one wait. Limits of users
// do not concern one with an override, which stays whatever the limits of all others become.
func (j *Judge) tryCandidate(ctx context.Context, now time.Time, policies *clientcfg.PolicySnapshot, r *Request) (t Tried) {
	trial, ok := policies.Trial(r.Key.ClientID)
	live := policies.For(r.Key.ClientID)
	if !ok || j.Observe == nil {
		return t
	}
	k, tried, concerned := trial.Of(r.Key.Username, live.HasOverride(r.Key))
	if !concerned {
		return t
	}
	tried = trial.Over(live, tried)
	t.Since = trial.Since
	if j.Bans != nil && j.Bans.Tried(now, k, tried, trial.Since) {
		t.Outcome = ratelimit.WouldBan
		return t
	}
	d := j.candidateTurn(ctx, now, r, k, tried)
	if r.Reuse != nil && r.Reuse.Tried(tried, &trial, d.Outcome == ratelimit.WouldDeny) {
		d.Outcome = ratelimit.WouldReuse
	}
	if j.Bans != nil && !r.Unproven && d.ThroughLimit() { // as countDenial
		j.Bans.TriedDenied(now, k, tried, trial.Since)
	}
	if t.Outcome = d.Outcome; d.Outcome != ratelimit.Allowed {
		t.Limit = bindingName(&d)
	}
	return t
}

// candidateTurn is the decision of the limits that are tried out. Over them, the request would wait as they say, or as
// those in force do.
func (j *Judge) candidateTurn(ctx context.Context, now time.Time, r *Request, k ratelimit.Key, tried *ratelimit.Effective) ratelimit.Decision {
	of := r.of(tried)
	if !of.Waits(k) {
		return j.Counters.Take(now, k, of, 1)
	}
	return j.lines.Take(ctx, k, func() *ratelimit.Effective { return of }).Decision
}
