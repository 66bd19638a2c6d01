package grants_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/bans"
	"oauth-server/internal/ratelimit"
)

// triedWorld tries a candidate on the client shop, which never reaches its limits in force.
func triedWorld(t *testing.T, in ratelimit.Policy, c *clientcfg.Candidate) (w *world, outcomes func() []string) {
	t.Helper()
	settings := ratelimit.DefaultSettings()
	in.User, in.Client = settings.Default.User, settings.Default.Client
	settings.Default = in
	c.Since = start
	w, seen := policyWorld(t, settings, clientcfg.PolicySet{}.WithCandidate("shop", c))
	keeper, err := bans.New(t.Context(), bans.Options{Store: bans.NewRepository(w.store), Counters: w.opts.Counters, Clock: w.clock.Now})
	check.OK(t, err)
	w.reopen(func(o *grants.Options) { o.Bans = keeper })
	return w, func() (got []string) {
		for _, d := range *seen {
			got = append(got, d.Decision.Outcome.String()+", tried "+d.Tried.Outcome.String())
		}
		*seen = nil
		return got
	}
}

// two admits two requests a minute.
var two = []ratelimit.Limit{ratelimit.NewLimit("two", 2, time.Minute)}

func threeDenials() *ratelimit.Ban {
	b := ratelimit.DefaultBan()
	b.Denials = 3
	return &b
}

// TestCandidateBans: bans of a candidate ban no one, and match the bans of dry-run.
func TestCandidateBans(t *testing.T) {
	w, outcomes := triedWorld(t, ratelimit.Policy{}, &clientcfg.Candidate{Policy: ratelimit.Policy{Client: two, Ban: threeDenials()}})
	for range 7 {
		w.mustToken("shop", clientCredentials)
	}
	w.mustToken("other", clientCredentials)
	check.Equal(t, "outcomes", outcomes(), []string{
		"allowed, tried allowed", "allowed, tried allowed", "allowed, tried would_deny", "allowed, tried would_deny", "allowed, tried would_deny",
		"allowed, tried would_ban", "allowed, tried would_ban", "allowed, tried off",
	})
	w.clock.Advance(5 * time.Minute)
	for range 6 { // the second ban is for ten minutes
		w.mustToken("shop", clientCredentials)
	}
	w.clock.Advance(5 * time.Minute)
	w.mustToken("shop", clientCredentials)
	got := outcomes()
	check.Equal(t, "after the first ban", got[0], "allowed, tried allowed")
	check.Equal(t, "in the second one", got[5:], []string{"allowed, tried would_ban", "allowed, tried would_ban"})
	list, err := bans.NewRepository(w.store).Bans(t.Context(), time.Time{})
	check.OK(t, err)
	check.Equal(t, "stored", len(list), 0)
}

// TestCandidateBesideABan: a candidate without a ban setting is tried with the ban in force, but
// with its own denials. A candidate with bans off has no bans, whatever is in force.
func TestCandidateBesideABan(t *testing.T) {
	for want, ban := range map[string]*ratelimit.Ban{"allowed, tried would_ban": nil, "allowed, tried would_deny": {Off: true}} {
		w, outcomes := triedWorld(t, ratelimit.Policy{Ban: threeDenials()}, &clientcfg.Candidate{Policy: ratelimit.Policy{Client: two, Ban: ban}})
		for range 6 {
			w.mustToken("shop", clientCredentials)
		}
		check.Equal(t, "the last one", outcomes()[5], want)
	}
}

// TestAnotherCandidateBansAnew: a new candidate does not inherit bans and denials of the previous
// one.
func TestAnotherCandidateBansAnew(t *testing.T) {
	c := &clientcfg.Candidate{Policy: ratelimit.Policy{Client: two, Ban: threeDenials()}}
	w, outcomes := triedWorld(t, ratelimit.Policy{}, c)
	for range 6 {
		w.mustToken("shop", clientCredentials)
	}
	check.Equal(t, "the last one", outcomes()[5], "allowed, tried would_ban")
	later := *c
	later.Since = start.Add(time.Minute)
	policies := testworld.Policies(t, ratelimit.DefaultSettings(), clientcfg.PolicySet{}.WithCandidate("shop", &later))
	w.reopen(func(o *grants.Options) { o.Policies = func() *clientcfg.PolicySnapshot { return policies } })
	w.mustToken("shop", clientCredentials)
	check.Equal(t, "under another candidate", outcomes(), []string{"allowed, tried would_deny"})
}

// TestCandidateOverItsLimits: the candidate's setting decides about requests over its limits, not
// the setting in force.
func TestCandidateOverItsLimits(t *testing.T) {
	longest := ratelimit.Duration(10 * time.Second)
	one := ratelimit.NewLimit("few", 1, 10*time.Second)
	one.Frames = 10
	few := []ratelimit.Limit{one}
	for name, tc := range map[string]struct {
		in   ratelimit.Policy
		c    clientcfg.Candidate
		want string
	}{
		"waits":           {ratelimit.Policy{}, clientcfg.Candidate{Policy: ratelimit.Policy{Client: few, MaxWait: &longest}}, "allowed, tried would_delay"},
		"waits no more":   {ratelimit.Policy{MaxWait: &longest}, clientcfg.Candidate{Policy: ratelimit.Policy{Client: few, MaxWait: new(ratelimit.Duration)}}, "allowed, tried would_deny"},
		"reuses":          {ratelimit.Policy{}, clientcfg.Candidate{Policy: ratelimit.Policy{Client: few, OverLimit: ratelimit.OverLimitReuse}}, "allowed, tried would_reuse"},
		"reuses no more":  {ratelimit.Policy{OverLimit: ratelimit.OverLimitReuse}, clientcfg.Candidate{Policy: ratelimit.Policy{Client: few, OverLimit: ratelimit.OverLimitDeny}}, "allowed, tried would_deny"},
		"as in force":     {ratelimit.Policy{OverLimit: ratelimit.OverLimitReuse}, clientcfg.Candidate{Policy: ratelimit.Policy{Client: few}}, "allowed, tried would_reuse"},
		"nothing of that": {ratelimit.Policy{}, clientcfg.Candidate{Policy: ratelimit.Policy{Client: few}}, "allowed, tried would_deny"},
	} {
		t.Run(name, func(t *testing.T) {
			w, outcomes := triedWorld(t, tc.in, &tc.c)
			w.mustToken("shop", clientCredentials)
			w.clock.Advance(3 * time.Second) // puts a turn within the longest wait
			w.mustToken("shop", clientCredentials)
			check.Equal(t, "the second request", outcomes()[1], tc.want)
			check.OK(t, w.service.SweepLastTokens(t.Context()))
		})
	}
}
