package grants_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter"
	"oauth-server/internal/limiter/bans"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/ratelimit"
)

// banWorld admits 2 tokens a minute for a client and 3 for a user, and bans for 5 minutes after 3
// denials in a minute.
func banWorld(t *testing.T, edits ...func(*ratelimit.Settings)) (*world, *[]limiter.Decided) {
	t.Helper()
	w, seen := limitedWorld(t, append([]func(*ratelimit.Settings){func(s *ratelimit.Settings) {
		b := ratelimit.DefaultBan()
		b.Denials = 3
		s.Default.Ban = &b
	}}, edits...)...)
	keeper, err := bans.New(t.Context(), bans.Options{Store: bans.NewRepository(w.store), Counters: w.opts.Counters, Clock: w.clock.Now})
	check.OK(t, err)
	w.reopen(func(o *grants.Options) { o.Bans = keeper })
	return w, seen
}

// deny sends requests that are all over the limit, and returns the last error.
func (w *world) deny(n int, id string, req grants.TokenRequest) (last *oautherr.LimitedError) {
	w.tb.Helper()
	for range n {
		if last = w.limited(id, req); last == nil || last.Banned {
			w.tb.Fatalf("got %+v, want a denial by a limit", last)
		}
	}
	return last
}

// TestBan: a client that continues after denials is banned, exactly as long as the policy says.
func TestBan(t *testing.T) {
	w, seen := banWorld(t)
	_ = w.spend("shop", func() grants.TokenRequest { return clientCredentials }) // the first denial
	_ = w.deny(2, "shop", clientCredentials)
	w.clock.Advance(2*time.Minute + 100*time.Millisecond) // the limit admits requests again
	got := w.limited("shop", clientCredentials)
	if got == nil {
		t.Fatal("the client is not banned")
	}
	want := &oautherr.LimitedError{RetryAfter: 3 * time.Minute, Limit: "ban", Banned: true}
	check.Equal(t, "description", got.Description(),
		"This client is temporarily banned because it repeatedly exceeded its token rate limit; retry after 180 seconds.")
	check.Equal(t, "RetryAfter", got.RetryAfter, want.RetryAfter)
	check.Equal(t, "Banned", got.Banned, true)
	check.Equal(t, "Limit", got.Limit, want.Limit)
	check.Equal(t, "QuotaExceeded", got.QuotaExceeded, false)
	check.Equal(t, "RateLimit", got.RateLimit, oautherr.RateLimit{})
	check.Equal(t, "Violated", len(got.Violated), 0)
	last := (*seen)[len(*seen)-1]
	check.Equal(t, "Outcome", last.Decision.Outcome, ratelimit.Banned)
	check.Equal(t, "Counted", last.Decision.Counted(), false)
	w.mustToken("other", clientCredentials)
	w.clock.Advance(3 * time.Minute)
	w.mustToken("shop", clientCredentials)
}

// TestBanOfUser: a ban of a user applies to that user of that client only.
func TestBanOfUser(t *testing.T) {
	w, _ := banWorld(t)
	req := func() grants.TokenRequest {
		return grants.TokenRequest{GrantType: "authorization_code", Code: w.code("shop"), RedirectURI: callback, CodeVerifier: verifier}
	}
	_ = w.spend("shop", req)
	kept := req()
	_ = w.deny(2, "shop", kept)
	if got := w.limited("shop", kept); got == nil || !got.Banned {
		t.Fatalf("got %+v, want a ban", got)
	}
	check.ErrorSays(t, w.limited("shop", kept), "This client and user are temporarily banned because they repeatedly exceeded their token rate limit")
	w.mustToken("shop", clientCredentials)
	w.mustToken("caller", grants.TokenRequest{GrantType: "authorization_code", Code: w.code("caller"), RedirectURI: callback, CodeVerifier: verifier})
	// The password is not checked, and the ban does not show under another username.
	banned := w.limited("shop", byPassword("alice", "wrong"))
	if banned == nil || !banned.Banned {
		t.Errorf("password grant: got %+v, want a ban", banned)
	}
	w.mustToken("shop", byPassword("bob", password))
}

// TestPasswordGrantBansNobody: password requests over the limit are not authenticated, so they
// cause no ban, and dry-run reports none.
func TestPasswordGrantBansNobody(t *testing.T) {
	for name, mode := range map[string]ratelimit.Mode{"enforce": ratelimit.Enforce, "dry-run": ratelimit.DryRun} {
		w, seen := banWorld(t, func(s *ratelimit.Settings) { s.Mode = mode })
		for range 8 {
			_, _ = w.token("shop", byPassword("alice", password))
		}
		for _, d := range *seen {
			if o := d.Decision.Outcome; o == ratelimit.Banned || o == ratelimit.WouldBan {
				t.Fatalf("%s: %v", name, o)
			}
		}
	}
}

// TestBanInDryRun: the ban is observed, and every request passes.
func TestBanInDryRun(t *testing.T) {
	w, seen := banWorld(t, func(s *ratelimit.Settings) { s.Mode = ratelimit.DryRun })
	for range 7 {
		w.mustToken("shop", clientCredentials)
	}
	var got []string
	for _, d := range *seen {
		got = append(got, d.Decision.Outcome.String())
	}
	check.Equal(t, "outcomes", got, []string{"allowed", "allowed", "would_deny", "would_deny", "would_deny", "would_ban", "would_ban"})
	list, err := bans.NewRepository(w.store).Bans(t.Context(), time.Time{})
	check.OK(t, err)
	check.Equal(t, "stored", len(list), 0)
}

// TestReuseIsNoDenial: getting the last token again is not a denial. A banned client does not get
// it.
func TestReuseIsNoDenial(t *testing.T) {
	w, seen := banWorld(t, func(s *ratelimit.Settings) { s.Default.OverLimit = ratelimit.OverLimitReuse })
	for range 10 {
		w.mustToken("shop", scoped("read"))
	}
	check.Equal(t, "outcome", (*seen)[9].Decision.Outcome, ratelimit.Reused)
	_ = w.deny(3, "shop", scoped("write")) // there is no last token for this scope
	if got := w.limited("shop", scoped("read")); got == nil || !got.Banned {
		t.Errorf("got %+v, want a ban", got)
	}
}

// TestTrustedIsNeverBanned: a trusted client is neither denied nor banned.
func TestTrustedIsNeverBanned(t *testing.T) {
	w, _ := banWorld(t, policy("shop", ratelimit.Policy{Trusted: true}))
	for range 20 {
		w.mustToken("shop", clientCredentials)
	}
}

// triedWorld tries a candidate on the client shop, which never reaches its limits in force.
func triedWorld(t *testing.T, in ratelimit.Policy, c *clientcfg.Value) (w *world, outcomes func() []string) {
	t.Helper()
	settings := ratelimit.DefaultSettings()
	in.User, in.Client = settings.Default.User, settings.Default.Client
	settings.Default = in
	c.Since = start
	w, seen := policyWorld(t, settings, testworld.Tried("shop", *c))
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
	w, outcomes := triedWorld(t, ratelimit.Policy{}, &clientcfg.Value{Policy: ratelimit.Policy{Client: two, Ban: threeDenials()}})
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
		w, outcomes := triedWorld(t, ratelimit.Policy{Ban: threeDenials()}, &clientcfg.Value{Policy: ratelimit.Policy{Client: two, Ban: ban}})
		for range 6 {
			w.mustToken("shop", clientCredentials)
		}
		check.Equal(t, "the last one", outcomes()[5], want)
	}
}

// TestAnotherCandidateBansAnew: a new candidate does not inherit bans and denials of the previous
// one.
func TestAnotherCandidateBansAnew(t *testing.T) {
	c := &clientcfg.Value{Policy: ratelimit.Policy{Client: two, Ban: threeDenials()}}
	w, outcomes := triedWorld(t, ratelimit.Policy{}, c)
	for range 6 {
		w.mustToken("shop", clientCredentials)
	}
	check.Equal(t, "the last one", outcomes()[5], "allowed, tried would_ban")
	later := *c
	later.Since = start.Add(time.Minute)
	policies := testworld.Policies(t, ratelimit.DefaultSettings(), testworld.Tried("shop", later))
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
		c    clientcfg.Value
		want string
	}{
		"waits":           {ratelimit.Policy{}, clientcfg.Value{Policy: ratelimit.Policy{Client: few, MaxWait: &longest}}, "allowed, tried would_delay"},
		"waits no more":   {ratelimit.Policy{MaxWait: &longest}, clientcfg.Value{Policy: ratelimit.Policy{Client: few, MaxWait: new(ratelimit.Duration)}}, "allowed, tried would_deny"},
		"reuses":          {ratelimit.Policy{}, clientcfg.Value{Policy: ratelimit.Policy{Client: few, OverLimit: ratelimit.OverLimitReuse}}, "allowed, tried would_reuse"},
		"reuses no more":  {ratelimit.Policy{OverLimit: ratelimit.OverLimitReuse}, clientcfg.Value{Policy: ratelimit.Policy{Client: few, OverLimit: ratelimit.OverLimitDeny}}, "allowed, tried would_deny"},
		"as in force":     {ratelimit.Policy{OverLimit: ratelimit.OverLimitReuse}, clientcfg.Value{Policy: ratelimit.Policy{Client: few}}, "allowed, tried would_reuse"},
		"nothing of that": {ratelimit.Policy{}, clientcfg.Value{Policy: ratelimit.Policy{Client: few}}, "allowed, tried would_deny"},
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
