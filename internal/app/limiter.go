package app

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"oauth-server/internal/activity"
	"oauth-server/internal/admin"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
	"oauth-server/internal/grants"
	"oauth-server/internal/metrics"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store/watched"
	"oauth-server/internal/tracing"
)

// policiesRefreshEvery bounds how long an operator's change takes to reach
// every instance.
const policiesRefreshEvery = time.Second

// openLimiter reads the limits: the file's, with what
// operators changed on top.
func (s *Server) openLimiter(ctx context.Context) (err error) {
	if err := s.checkPolicies(); err != nil {
		return err
	}
	s.activity = activity.New(activity.DefaultMaxClients, time.Now())
	s.resets = admin.NewResets(s.counters, s.store, s.log)
	s.policies, err = clientcfg.NewPolicySource(ctx, watched.NewPolicies(s.store, s.telemetry), clientcfg.PolicyOptions{
		Base: s.cfg.RateLimit.Settings, Adopted: s.resets.Adopted,
	})
	if err != nil {
		return err
	}
	s.sayWhatWasChanged(ctx)
	s.warnOfShortCodes(ctx)
	s.telemetry.WatchPolicies(func() metrics.PolicySnapshot { return s.policies.Snapshot() })
	s.telemetry.WatchMemory(func() metrics.Memory { return memory(s.counters.Stats()) })
	return nil
}

// warnOfShortCodes tells of limits that can make a client wait for longer than its
// authorization code lives. What the limiter denies should not be lost.
func (s *Server) warnOfShortCodes(ctx context.Context) {
	life := s.cfg.Tokens.CodeTTL.Std()
	policies := map[string]ratelimit.Policy{"": s.cfg.RateLimit.Default}
	maps.Copy(policies, s.cfg.RateLimit.Clients)
	for _, id := range slices.Sorted(maps.Keys(policies)) {
		policy := policies[id]
		for _, l := range policy.User {
			if !policy.Trusted && l.Window >= life {
				s.log.LogAttrs(ctx, slog.LevelWarn, "authorization codes can expire while a limit makes them wait: raise tokens.code_ttl",
					slog.String("client_id", cmp.Or(id, "(default)")), slog.String("limit", l.Name),
					slog.String("window", l.Window.String()), slog.String("code_ttl", life.String()))
			}
		}
	}
}

// sayWhatWasChanged reminds whoever edits the configuration file that some of
// it does not hold.
func (s *Server) sayWhatWasChanged(ctx context.Context) {
	set := s.policies.Snapshot().Set()
	settings, clients := set.Changed()
	if len(settings)+len(clients) > 0 {
		s.log.LogAttrs(ctx, slog.LevelInfo, "operators have changed limits, which hold instead of the configuration's: see oauth-server limits list",
			slog.Any("settings", settings), slog.Int("clients", len(clients)))
	}
}

func memory(st ratelimit.Stats) metrics.Memory {
	return metrics.Memory{
		Counters: st.Keys, MaxCounters: st.MaxKeys,
		Evictions: st.Evicted, Overflows: st.Overflowed, Expired: st.Expired,
	}
}

func failureLimits(window config.Duration, q config.FailureQuota) grants.FailureLimits {
	return grants.FailureLimits{
		PerAddress: ratelimit.NewLimit("per-address", q.PerAddress, window.Std()),
		PerName:    ratelimit.NewLimit("per-name", q.PerName, window.Std()),
	}
}

// decided is told of every decision of the limiter.
func (s *Server) decided(ctx context.Context, d grants.Decided) {
	s.telemetry.decided(ctx, d)
	kind := activity.User
	if d.Grant == clientcfg.ClientCredentials {
		kind = activity.Client
	}
	s.activity.Record(time.Now(), activity.Observation{
		ClientID: d.ClientID, Kind: kind, Decision: &d.Decision,
		Tried: d.CandidateAsked, Refused: d.CandidateDenies, TriedSince: d.CandidateSince,
	})
}

// decided counts a decision of the limiter, and notes it on the request's trace.
func (t *telemetry) decided(ctx context.Context, d grants.Decided) {
	grant := string(d.Grant)
	if tracing.Recording(ctx) {
		noteDecision(ctx, &d)
	}
	if d.CandidateDenies {
		t.Decision(d.ClientID, grant, metrics.CandidateWouldDeny)
	}
	if d.Decision.Outcome == ratelimit.Passed {
		return // the mode is off: not even counted
	}
	t.Decision(d.ClientID, grant, d.Decision.Outcome.String())
	if d.Decision.Outage {
		t.OutageDecision(d.ClientID, d.Decision.Outcome.String())
	}
	if d.Decision.Soft && !d.Decision.Rejected() {
		t.SoftWarning(d.ClientID, grant)
	}
	if d.Decision.Counted() {
		t.Usage(d.ClientID, d.Decision.Usage())
	}
}

func noteDecision(ctx context.Context, d *grants.Decided) {
	binding, _ := d.Decision.BindingLimit()
	tracing.Decided(ctx, tracing.Decision{
		ClientID: d.ClientID, Grant: string(d.Grant), Outcome: d.Decision.Outcome.String(),
		Limit: binding.Limit.Name, Usage: d.Decision.Usage(), RetryAfter: d.Decision.RetryAfter,
	})
}
