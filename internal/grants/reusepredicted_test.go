package grants_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter"
	"oauth-server/internal/ratelimit"
)

// TestReuseInDryRunIsThatOfEnforce: tokens of requests that enforce would deny do not become last
// tokens.
func TestReuseInDryRunIsThatOfEnforce(t *testing.T) {
	outcomes := func(mode ratelimit.Mode) (out []string) {
		w, seen := reuseWorld(t, func(s *ratelimit.Settings) { s.Mode = mode })
		for range 20 {
			_, _ = w.token("shop", clientCredentials)
			w.later(7 * time.Minute)
		}
		for _, d := range *seen {
			out = append(out, map[string]string{"would_deny": "denied", "would_reuse": "reused"}[d.Decision.Outcome.String()])
			if out[len(out)-1] == "" {
				out[len(out)-1] = d.Decision.Outcome.String()
			}
		}
		return out
	}
	enforced := outcomes(ratelimit.Enforce)
	check.Equal(t, "outcomes in dry-run", outcomes(ratelimit.DryRun), enforced)
	check.Equal(t, "the first ones", enforced[:10], []string{
		"allowed", "allowed", "reused", "reused", "reused", "reused", "reused", "reused", "denied", "allowed",
	})
}

// TestReuseUnderACandidate: a candidate's predictions use the tokens that it would have issued.
func TestReuseUnderACandidate(t *testing.T) {
	settings := ratelimit.DefaultSettings()
	settings.Default.OverLimit = ratelimit.OverLimitReuse
	one := []ratelimit.Limit{ratelimit.NewLimit("per-day", 1, 24*time.Hour)}
	w, seen := policyWorld(t, settings, clientcfg.PolicySet{}.WithCandidate("shop", &clientcfg.Candidate{Policy: ratelimit.Policy{Client: one}}))
	for range 3 {
		w.mustToken("shop", clientCredentials)
		w.later(25 * time.Minute)
	}
	for i, want := range []ratelimit.Outcome{ratelimit.Allowed, ratelimit.WouldReuse, ratelimit.WouldDeny} {
		check.Equal(t, "tried", (*seen)[i].Tried.Outcome, want)
		check.Equal(t, "Outcome", (*seen)[i].Decision.Outcome, ratelimit.Allowed)
	}
	check.Equal(t, "limit", (*seen)[1].Tried.Limit, "per-day")
}

// TestReusePredictsRevocations: dry-run and candidates ignore revoked tokens.
func TestReusePredictsRevocations(t *testing.T) {
	outcomes := func(mode ratelimit.Mode) (out []limiter.Decided) {
		settings := ratelimit.DefaultSettings()
		settings.Mode, settings.Default.OverLimit = mode, ratelimit.OverLimitReuse
		settings.Default.Client = []ratelimit.Limit{ratelimit.NewLimit("per-hour", 2, time.Hour)}
		candidate := &clientcfg.Candidate{Policy: ratelimit.Policy{Client: settings.Default.Client}}
		w, seen := policyWorld(t, settings, clientcfg.PolicySet{}.WithCandidate("shop", candidate))
		for range 3 {
			if answer, err := w.token("shop", clientCredentials); err == nil {
				w.revoke(answer.AccessToken)
			}
		}
		return *seen
	}
	check.Equal(t, "enforce", outcomes(ratelimit.Enforce)[2].Decision.Outcome, ratelimit.Denied)
	predicted := outcomes(ratelimit.DryRun)[2]
	check.Equal(t, "dry-run", predicted.Decision.Outcome, ratelimit.WouldDeny)
	check.Equal(t, "tried", predicted.Tried.Outcome, ratelimit.WouldDeny)
}

// TestReusePredictsRevocationsElsewhere: the sweep also checks the revocation of tokens kept for
// predictions.
func TestReusePredictsRevocationsElsewhere(t *testing.T) {
	w, seen := reuseWorld(t, func(s *ratelimit.Settings) { s.Mode = ratelimit.DryRun })
	last := w.exhausted(clientCredentials)
	here := w.service
	w.reopen()
	w.revoke(last.AccessToken)
	w.service = here
	check.OK(t, w.service.SweepLastTokens(t.Context()))
	w.mustToken("shop", clientCredentials)
	check.Equal(t, "Outcome", (*seen)[2].Decision.Outcome, ratelimit.WouldDeny)
}

// TestReuseBesideACandidate: a candidate does not displace tokens that are handed out.
func TestReuseBesideACandidate(t *testing.T) {
	settings := ratelimit.DefaultSettings()
	settings.Default.OverLimit = ratelimit.OverLimitReuse
	settings.Default.Client = []ratelimit.Limit{ratelimit.NewLimit("per-hour", 20, time.Hour)}
	looser := &clientcfg.Candidate{Policy: ratelimit.Policy{Client: []ratelimit.Limit{ratelimit.NewLimit("per-hour", 1000, time.Hour)}}}
	w, _ := policyWorld(t, settings, clientcfg.PolicySet{}.WithCandidate("shop", looser))
	var scopes []string
	for i := range 20 {
		scopes = append(scopes, fmt.Sprintf("scope-%02d", i))
	}
	w.changeClient("shop", func(c *clientcfg.Client) { c.Scopes = slices.Clone(scopes) })
	for range 2 {
		for _, scope := range scopes {
			w.mustToken("shop", scoped(scope))
		}
	}
}

// TestReuseUnderACandidateInAnyMode: predictions for a candidate do not depend on the mode.
func TestReuseUnderACandidateInAnyMode(t *testing.T) {
	for name, edit := range map[string]func(*ratelimit.Settings){
		"enforce": func(*ratelimit.Settings) {},
		"dry-run": func(s *ratelimit.Settings) { s.Mode = ratelimit.DryRun },
		"off":     func(s *ratelimit.Settings) { s.Mode = ratelimit.Off },
		"trusted": policy("shop", ratelimit.Policy{Trusted: true}),
	} {
		t.Run(name, func(t *testing.T) {
			settings := ratelimit.DefaultSettings()
			settings.Clients = map[string]ratelimit.Policy{}
			settings.Default.OverLimit = ratelimit.OverLimitReuse
			edit(&settings)
			one := []ratelimit.Limit{ratelimit.NewLimit("per-day", 1, 24*time.Hour)}
			w, seen := policyWorld(t, settings, clientcfg.PolicySet{}.WithCandidate("shop", &clientcfg.Candidate{Policy: ratelimit.Policy{Client: one}}))
			w.exhausted(clientCredentials)
			check.Equal(t, "tried", (*seen)[1].Tried.Outcome, ratelimit.WouldReuse)
			check.OK(t, w.service.SweepLastTokens(t.Context()))
			check.Equal(t, "left by the sweep", w.service.TriedTokens(), 1)
		})
	}
}
