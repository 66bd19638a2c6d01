package grants

import (
	"context"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
)

// tryCandidate decides on the request under limits that are tried out, if there are any for its key and an observer,
// whether or not the limits in force admit it. It never denies a request, nor does it have one wait. Limits of users
// do not concern one with an override, which stays whatever the limits of all others become.
func (s *Service) tryCandidate(ctx context.Context, now time.Time, policies *clientcfg.PolicySnapshot, x *issuance) (t Tried) {
	trial, ok := policies.Trial(x.client.ID)
	live := policies.For(x.client.ID)
	if !ok || s.opts.Observe == nil {
		return t
	}
	k, tried, concerned := trial.Of(x.auth.Username, live.HasOverride(x.quota()))
	if !concerned {
		return t
	}
	tried = trial.Over(live, tried)
	t.Since = trial.Since
	if s.opts.Bans != nil && s.opts.Bans.Tried(now, k, tried, trial.Since) {
		t.Outcome = ratelimit.WouldBan
		return t
	}
	d := s.candidateTurn(ctx, now, x, k, tried)
	if s.candidateReuses(x, tried, &trial, d.Outcome == ratelimit.WouldDeny) {
		d.Outcome = ratelimit.WouldReuse
	}
	if s.opts.Bans != nil && x.grant != clientcfg.Password && d.ThroughLimit() { // as countDenial
		s.opts.Bans.TriedDenied(now, k, tried, trial.Since)
	}
	if t.Outcome = d.Outcome; d.Outcome != ratelimit.Allowed {
		t.Limit = bindingName(&d)
	}
	return t
}

// candidateTurn is the decision of the limits that are tried out. Over them, the request would wait as they say, or as
// those in force do.
func (s *Service) candidateTurn(ctx context.Context, now time.Time, x *issuance, k ratelimit.Key, tried *ratelimit.Effective) ratelimit.Decision {
	of := x.asked().of(tried)
	if !of.Waits(k) {
		return s.opts.Counters.Take(now, k, of, 1)
	}
	return s.turns.Take(ctx, k, func() *ratelimit.Effective { return of }).Decision
}
