package grants_test

import (
	"context"
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
	"oauth-server/internal/ratelimit/counting"
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
	check.OK(w.tb, w.service.Revoke(w.tb.Context(), grants.TokenQuery{Credentials: w.credentials("shop"), Token: token}))
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
	if w.limited("shop", clientCredentials) == nil {
		t.Fatal("a token with a fifth of its life left was handed out again")
	}
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
		if w.limited("shop", scoped(scope)) == nil {
			t.Errorf("scope %q: got a token of another scope", scope)
		}
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

// TestReuseAtAnotherInstance: an instance that has issued no token denies, and hands out its own
// token once it has issued one.
func TestReuseAtAnotherInstance(t *testing.T) {
	w, _ := reuseWorld(t)
	w.exhausted(clientCredentials)
	w.reopen() // counts together with the first one
	if w.limited("shop", clientCredentials) == nil {
		t.Fatal("got a token of another instance")
	}
	w.later(2 * time.Hour) // the window has room
	own := w.exhausted(clientCredentials)
	check.Equal(t, "token", w.mustToken("shop", clientCredentials).AccessToken, own.AccessToken)
}

// TestReuseIsForClientCredentials: users over their limits are denied.
func TestReuseIsForClientCredentials(t *testing.T) {
	w, _ := reuseWorld(t)
	_ = w.spend("shop", func() grants.TokenRequest { return w.redemption("shop", w.code("shop")) })
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
			if w.limited("shop", clientCredentials) == nil {
				t.Fatal("the token was handed out again")
			}
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
	w.service.HoldTurns()
	if w.limited("shop", scoped("write")) == nil {
		t.Fatal("got a token of another scope")
	}
}

// TestReuseWithShortLives: no token is handed out again with an expires_in of 0.
func TestReuseWithShortLives(t *testing.T) {
	w, _ := reuseWorld(t)
	w.reopen(func(o *grants.Options) { o.AccessTokenLifetime = 3 * time.Second })
	w.exhausted(clientCredentials)
	w.later(1999 * time.Millisecond)
	check.Equal(t, "ExpiresIn", w.mustToken("shop", clientCredentials).ExpiresIn, time.Second)
	w.later(time.Millisecond)
	if w.limited("shop", clientCredentials) == nil {
		t.Fatal("a token with a second of its life left was handed out again")
	}
}

func BenchmarkReuse(b *testing.B) {
	settings := ratelimit.DefaultSettings()
	settings.Default.OverLimit = ratelimit.OverLimitReuse
	settings.Default.Client[0].Requests = 1
	policies := testworld.Policies(b, settings, clientcfg.PolicySet{})
	w := newWorld(b, func(o *grants.Options) {
		o.Counters = counting.NewCounters(0)
		o.Policies = func() *clientcfg.PolicySnapshot { return policies }
	})
	req := grants.TokenRequest{Credentials: w.credentials("shop"), GrantType: "client_credentials"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.service.Token(context.Background(), req); err != nil {
			b.Fatal(err)
		}
	}
}
