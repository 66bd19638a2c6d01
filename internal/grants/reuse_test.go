package grants_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/keys"
	"oauth-server/internal/limiter"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
)

// reuseWorld admits 2 tokens an hour per client. Above that the client gets its last token again.
func reuseWorld(t *testing.T, edits ...func(*ratelimit.Settings)) (*world, *[]limiter.Decided) {
	t.Helper()
	return limitedWorld(t, append([]func(*ratelimit.Settings){func(s *ratelimit.Settings) {
		s.Default.OverLimit = ratelimit.OverLimitReuse
		s.Default.Client = []ratelimit.Limit{ratelimit.NewLimit("per-hour", 2, time.Hour)}
	}}, edits...)...)
}

// exhausted requests the two tokens that are admitted, and returns the last one.
func (w *world) exhausted(req grants.TokenRequest) grants.TokenResponse {
	w.tb.Helper()
	w.mustToken("shop", req)
	return w.mustToken("shop", req)
}

// later advances the clock and sweeps, as an instance does every second.
func (w *world) later(d time.Duration) {
	w.tb.Helper()
	w.clock.Advance(d)
	check.OK(w.tb, w.service.SweepLastTokens(w.tb.Context()))
}

// revoke revokes a token of the client shop at this instance.
func (w *world) revoke(token string) {
	w.tb.Helper()
	check.OK(w.tb, w.service.Revoke(w.tb.Context(), w.query("shop", token)))
}

func scoped(scope string) grants.TokenRequest {
	return grants.TokenRequest{GrantType: "client_credentials", Scope: scope}
}

// TestReuse: over the limit, the last token is returned again with its remaining lifetime.
func TestReuse(t *testing.T) {
	w, seen := reuseWorld(t)
	last := w.exhausted(clientCredentials)
	w.clock.Advance(1500 * time.Millisecond)
	again := w.mustToken("shop", clientCredentials)
	check.Equal(t, "token", again.AccessToken, last.AccessToken)
	check.Equal(t, "ExpiresIn", again.ExpiresIn, time.Hour-2*time.Second)
	check.Equal(t, "Scopes", again.Scopes, last.Scopes)
	check.Equal(t, "RateLimit-Policy", again.RateLimit.Policy, `"per-hour";q=2;w=3600`)
	check.Equal(t, "Outcome", (*seen)[2].Decision.Outcome, ratelimit.Reused)
	check.Equal(t, "RetryAfter", (*seen)[2].Decision.RetryAfter, time.Duration(0))

	w.later(48*time.Minute - 1501*time.Millisecond)
	check.Equal(t, "ExpiresIn", w.mustToken("shop", clientCredentials).ExpiresIn, 12*time.Minute)
	w.later(time.Millisecond)
	w.wantDenied("shop", clientCredentials) // its token has a fifth of its life left
}

// TestReuseOfEqualTokensOnly: another scope set, credential or client has a different last token,
// or no token.
//
// Attack (tokens): Another caller's reused token. A token is reused only for the same client,
// secret and scopes. Also grants.TestReuseOfTheSameCredential.
func TestReuseOfEqualTokensOnly(t *testing.T) {
	w, _ := reuseWorld(t)
	last := w.exhausted(scoped("read write"))
	check.Equal(t, "token of the scopes in another order", w.mustToken("shop", scoped("write read")).AccessToken, last.AccessToken)
	for _, scope := range []string{"read", "read write admin", "admin"} {
		w.wantDenied("shop", scoped(scope))
	}
	w.mustToken("other", scoped("read write"))
	if other := w.mustToken("other", scoped("read write")); other.AccessToken == last.AccessToken {
		t.Error("got a token of another client")
	}
}

// TestReuseOfTheSameCredential: while a client has two secrets, each has its own last tokens.
func TestReuseOfTheSameCredential(t *testing.T) {
	w, _ := reuseWorld(t)
	w.changeClient("shop", func(c *clientcfg.Client) {
		c.Former = clientcfg.FormerSecret{Digest: secret.DigestOf("the former"), Until: w.clock.Now().Add(time.Hour)}
	})
	w.exhausted(clientCredentials)
	former := clientCredentials
	former.Credentials = grants.Credentials{Method: grants.AuthPost, ClientID: "shop", Secret: "the former"}
	_, err := w.service.Token(t.Context(), former)
	_ = check.As[*oautherr.LimitedError](t, err)
	w.mustToken("shop", clientCredentials)
}

// TestReuseEnds: a token that may no longer be used is not handed out again.
//
// Attack (tokens): A reused token after a revocation. Revocations, withdrawn keys and changes of
// the client end the reuse. It stops, too, if revocations cannot be read. Also
// grants.TestSweepLastTokensWithoutTheStore.
func TestReuseEnds(t *testing.T) {
	for name, end := range map[string]func(w *world, token string){
		"revoked token": func(w *world, token string) {
			w.revoke(token)
		},
		"revoked token, at another instance": func(w *world, token string) {
			here := w.service
			w.reopen()
			w.revoke(token)
			w.service = here
			check.OK(w.tb, w.service.SweepLastTokens(w.tb.Context()))
		},
		"revoked client": func(w *world, _ string) { w.revokeClient("shop") },
		"another client": func(w *world, _ string) { w.replaceClient("shop") },
		"changed client": func(w *world, _ string) {
			w.changeClient("shop", func(c *clientcfg.Client) { c.Version++ })
		},
		"other audience": func(w *world, _ string) {
			w.changeClient("shop", func(c *clientcfg.Client) { c.Audience = []string{"https://api.example.com"} })
		},
		"withdrawn key": func(w *world, _ string) { w.withdrawKeys() },
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := reuseWorld(t)
			last := w.exhausted(clientCredentials)
			check.Equal(t, "token before", w.mustToken("shop", clientCredentials).AccessToken, last.AccessToken)
			end(w, last.AccessToken)
			w.wantDenied("shop", clientCredentials)
		})
	}
}

// withdrawKeys replaces the signing keys, as an operator does after a leak.
func (w *world) withdrawKeys() {
	w.tb.Helper()
	stored, err := w.store.Keys(w.tb.Context())
	check.OK(w.tb, err)
	for _, k := range stored {
		check.OK(w.tb, w.store.DeleteKey(w.tb.Context(), k.ID))
	}
	fresh, err := newWorld(w.tb).store.Keys(w.tb.Context())
	check.OK(w.tb, err)
	check.OK(w.tb, w.store.AddKey(w.tb.Context(), fresh[0]))
	check.OK(w.tb, w.ring.Refresh(w.tb.Context()))
}

// TestReuseEndsWithEnforcing: a client that is switched to dry-run gets new tokens at once.
func TestReuseEndsWithEnforcing(t *testing.T) {
	w, seen := reuseWorld(t)
	last := w.exhausted(clientCredentials)
	s := ratelimit.DefaultSettings()
	s.Mode, s.Default = ratelimit.DryRun, w.opts.Policies().Settings().Default
	w.setPolicies(t, s)
	if again := w.mustToken("shop", clientCredentials); again.AccessToken == last.AccessToken {
		t.Error("the token was handed out again")
	}
	check.Equal(t, "Outcome", (*seen)[2].Decision.Outcome, ratelimit.WouldDeny) // predictions start over
}

// setPolicies replaces the policies of the running service.
func (w *world) setPolicies(t *testing.T, s ratelimit.Settings) {
	t.Helper()
	next := testworld.Policies(t, s, clientcfg.PolicySet{})
	w.service.SetPolicies(func() *clientcfg.PolicySnapshot { return next })
}

// TestReuseModes checks the outcome in each mode, and that dry-run changes nothing for clients.
func TestReuseModes(t *testing.T) {
	for name, tc := range map[string]struct {
		edit   func(*ratelimit.Settings)
		last   ratelimit.Outcome
		reused bool
		denied bool
	}{
		"enforce":               {func(*ratelimit.Settings) {}, ratelimit.Reused, true, false},
		"dry-run":               {func(s *ratelimit.Settings) { s.Mode = ratelimit.DryRun }, ratelimit.WouldReuse, false, false},
		"outside of the canary": {func(s *ratelimit.Settings) { s.CanaryPercent = 0 }, ratelimit.WouldReuse, false, false},
		"off":                   {func(s *ratelimit.Settings) { s.Mode = ratelimit.Off }, ratelimit.Passed, false, false},
		"trusted":               {policy("shop", ratelimit.Policy{Trusted: true}), ratelimit.Trusted, false, false},
		"denied by its policy":  {policy("shop", ratelimit.Policy{OverLimit: ratelimit.OverLimitDeny}), ratelimit.Denied, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			w, seen := reuseWorld(t, tc.edit)
			last := w.exhausted(clientCredentials)
			answer, err := w.token("shop", clientCredentials)
			check.Equal(t, "denied", err != nil, tc.denied)
			check.Equal(t, "reused", answer.AccessToken == last.AccessToken, tc.reused)
			check.Equal(t, "Outcome", (*seen)[2].Decision.Outcome, tc.last)
		})
	}
}

// TestReuseFindsTokensUnderWay: a request that is denied while an admitted one is still signing
// gets its token.
func TestReuseFindsTokensUnderWay(t *testing.T) {
	w, _ := reuseWorld(t, policy("shop", ratelimit.Policy{Client: []ratelimit.Limit{ratelimit.NewLimit("l", 1, time.Hour)}}))
	w.reopen(func(o *grants.Options) { o.Observe = nil })
	var tokens [50]atomic.Pointer[string]
	var n atomic.Int64
	passed, failures := atOnce(len(tokens), func() error {
		answer, err := w.token("shop", clientCredentials)
		tokens[n.Add(1)-1].Store(&answer.AccessToken)
		return err
	})
	check.Equal(t, "passed", passed, len(tokens))
	check.Equal(t, "failures", len(failures), 0)
	for i := range tokens {
		check.Equal(t, "token", *tokens[i].Load(), *tokens[0].Load())
	}
}

// signerThatWaits blocks until it may sign.
type signerThatWaits struct {
	grants.Signer
	sign chan struct{}
}

func (s *signerThatWaits) Sign(c keys.Claims) (string, error) {
	<-s.sign
	return s.Signer.Sign(c)
}

// TestReuseWaitsForTheAdmitted: a request denied because of an earlier one waits for the token of
// the earlier one, unless its client disconnects.
func TestReuseWaitsForTheAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := reuseWorld(t, policy("shop", ratelimit.Policy{Client: []ratelimit.Limit{ratelimit.NewLimit("l", 1, time.Hour)}}))
		signer := &signerThatWaits{Signer: w.ring, sign: make(chan struct{})}
		w.reopen(func(o *grants.Options) { o.Signer, o.Observe = signer, nil })
		admitted := w.asking(t.Context())
		again := w.asking(t.Context())
		ctx, hangUp := context.WithCancel(t.Context())
		gone := w.asking(ctx)
		check.Equal(t, "answered", admitted.answered.Load() || again.answered.Load() || gone.answered.Load(), false)
		hangUp()
		synctest.Wait()
		_ = check.As[*oautherr.LimitedError](t, gone.err)
		check.Equal(t, "answered", again.answered.Load(), false)
		close(signer.sign)
		synctest.Wait()
		check.OK(t, again.err)
		check.Equal(t, "token", again.token, admitted.token)
	})
}

// asked is a client_credentials request running in a goroutine.
type asked struct {
	token    string
	err      error
	answered atomic.Bool
}

func (w *world) asking(ctx context.Context) *asked {
	a := &asked{}
	go func() {
		answer, err := w.service.Token(ctx, grants.TokenRequest{Credentials: w.credentials("shop"), GrantType: "client_credentials"})
		a.token, a.err = answer.AccessToken, err
		a.answered.Store(true)
	}()
	synctest.Wait()
	return a
}

// TestReuseDenialsDoNotWait: a denied request waits only for requests for the same token. Otherwise
// this test hangs.
func TestReuseDenialsDoNotWait(t *testing.T) {
	w, _ := reuseWorld(t)
	w.exhausted(scoped("read"))
	w.service.BeginReuse()
	w.wantDenied("shop", scoped("write"))
}

// TestReuseWithShortLives: no token is handed out again with an expires_in of 0.
func TestReuseWithShortLives(t *testing.T) {
	w, _ := reuseWorld(t)
	w.reopen(func(o *grants.Options) { o.AccessTokenLifetime = 3 * time.Second })
	w.exhausted(clientCredentials)
	w.later(1999 * time.Millisecond)
	check.Equal(t, "ExpiresIn", w.mustToken("shop", clientCredentials).ExpiresIn, time.Second)
	w.later(time.Millisecond)
	w.wantDenied("shop", clientCredentials) // its token has a second left
}

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
	w, seen := policyWorld(t, settings, testworld.Tried("shop", clientcfg.Value{Policy: ratelimit.Policy{Client: one}}))
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
		candidate := &clientcfg.Value{Policy: ratelimit.Policy{Client: settings.Default.Client}}
		w, seen := policyWorld(t, settings, testworld.Tried("shop", *candidate))
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
	looser := &clientcfg.Value{Policy: ratelimit.Policy{Client: []ratelimit.Limit{ratelimit.NewLimit("per-hour", 1000, time.Hour)}}}
	w, _ := policyWorld(t, settings, testworld.Tried("shop", *looser))
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
			w, seen := policyWorld(t, settings, testworld.Tried("shop", clientcfg.Value{Policy: ratelimit.Policy{Client: one}}))
			w.exhausted(clientCredentials)
			check.Equal(t, "tried", (*seen)[1].Tried.Outcome, ratelimit.WouldReuse)
			check.OK(t, w.service.SweepLastTokens(t.Context()))
			check.Equal(t, "left by the sweep", w.service.TriedTokens(), 1)
		})
	}
}

// TestReuseIsBounded: the number of tokens of each client and the total size are bounded.
//
// Attack (tokens): Reused tokens fill the memory. Their number per client and their total size
// are bounded.
func TestReuseIsBounded(t *testing.T) {
	tokens, bytes := grants.FillLastTokens(30_000, 1000)
	if bytes > 16<<20 || tokens > 16<<10 || tokens < 10_000 {
		t.Errorf("%d tokens of %d bytes are kept of many clients", tokens, bytes)
	}
	if tokens, _ = grants.FillLastTokens(1000, 1); tokens != 32 {
		t.Errorf("%d tokens are kept of one client", tokens)
	}
}

// TestReuseGivesRoomBack: a client that had many tokens releases their memory.
func TestReuseGivesRoomBack(t *testing.T) {
	if room := grants.LastTokensRoom(); room > 8 {
		t.Errorf("room for %d tokens is kept for one", room)
	}
}

// TestSweepLastTokens: tokens that are no longer handed out, or predicted, are dropped from memory.
func TestSweepLastTokens(t *testing.T) {
	becomes := func(mode ratelimit.Mode, over ratelimit.OverLimit) func(w *world) {
		return func(w *world) {
			s := ratelimit.DefaultSettings()
			s.Mode, s.Default.OverLimit = mode, over
			w.setPolicies(t, s)
		}
	}
	const enforce, dryRun = ratelimit.Enforce, ratelimit.DryRun
	tooOld := func(w *world) { w.clock.Advance(48*time.Minute + time.Second) }
	for name, tc := range map[string]struct {
		mode ratelimit.Mode // at first
		then func(w *world)
		left int
	}{
		"in use":                         {enforce, func(*world) {}, 1},
		"too old":                        {enforce, tooOld, 0},
		"changed client":                 {enforce, func(w *world) { w.changeClient("shop", func(c *clientcfg.Client) { c.Version++ }) }, 0},
		"gone client":                    {enforce, func(w *world) { delete(w.clients, "shop") }, 0},
		"changed policy":                 {enforce, becomes(enforce, ratelimit.OverLimitDeny), 0},
		"withdrawn key":                  {enforce, (*world).withdrawKeys, 0},
		"dry-run now":                    {enforce, becomes(dryRun, ratelimit.OverLimitReuse), 0},
		"prediction in use":              {dryRun, func(*world) {}, 1},
		"prediction, too old":            {dryRun, tooOld, 0},
		"prediction, changed policy":     {dryRun, becomes(enforce, ratelimit.OverLimitDeny), 0},
		"prediction, now it is enforced": {dryRun, becomes(enforce, ratelimit.OverLimitReuse), 0},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := reuseWorld(t, func(s *ratelimit.Settings) { s.Mode = tc.mode })
			w.mustToken("shop", clientCredentials)
			tc.then(w)
			check.OK(t, w.service.SweepLastTokens(t.Context()))
			tokens, predicted := w.service.LastTokens()
			check.Equal(t, "left", []int{tokens, predicted}, map[ratelimit.Mode][]int{enforce: {tc.left, 0}, dryRun: {0, tc.left}}[tc.mode])
		})
	}
}

// TestSweepLastTokensWithoutTheStore: if revocations cannot be read, tokens are soon no longer
// handed out again, because other instances may revoke them.
func TestSweepLastTokensWithoutTheStore(t *testing.T) {
	w, _ := reuseWorld(t)
	f := w.fail()
	f.Operation, f.Err = "Get revocations", errDown
	w.later(time.Minute) // without tokens the store is not read
	last := w.exhausted(clientCredentials)
	sweep := func(want error) {
		t.Helper()
		check.ErrorIs(t, w.service.SweepLastTokens(t.Context()), want)
	}
	w.clock.Advance(10 * time.Second)
	sweep(errDown)
	check.Equal(t, "token", w.mustToken("shop", clientCredentials).AccessToken, last.AccessToken)
	w.clock.Advance(time.Millisecond)
	sweep(errDown)
	w.wantDenied("shop", clientCredentials) // its token may have been revoked
	f.Operation = ""
	sweep(nil)
	check.Equal(t, "token", w.mustToken("shop", clientCredentials).AccessToken, last.AccessToken)
}

// TestSweepFindsTheRevokedOnes: of many tokens only the revoked ones are dropped.
func TestSweepFindsTheRevokedOnes(t *testing.T) {
	w, _ := reuseWorld(t, func(s *ratelimit.Settings) { s.Default.Client[0].Requests = 7 })
	here := w.service
	var revoked []string
	for i, scope := range []string{"read", "write", "admin", "read write", "read admin", "write admin", "read write admin"} {
		token := w.mustToken("shop", scoped(scope)).AccessToken
		if i%3 == 1 {
			revoked = append(revoked, token)
		}
	}
	w.reopen()
	for _, token := range revoked {
		w.revoke(token)
	}
	w.service = here
	check.OK(t, w.service.SweepLastTokens(t.Context()))
	tokens, _ := w.service.LastTokens()
	check.Equal(t, "tokens left", tokens, 5)
	w.wantDenied("shop", scoped("write"))
	w.mustToken("shop", scoped("read"))
}
