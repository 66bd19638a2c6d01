package grants_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/ratelimit"
)

// TestReuseIsBounded: the number of tokens of each client and the total size are bounded.
//
// Attack (tokens): Reused tokens fill the memory. Their number per client and their total size
// are bounded.
func TestReuseIsBounded(t *testing.T) {
	tokens, bytes := grants.FillLastTokens(100_000, 1000)
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

// TestSweepLastTokens: tokens that are no longer handed out are dropped from memory.
func TestSweepLastTokens(t *testing.T) {
	for name, tc := range map[string]struct {
		then         func(w *world)
		tokens, sets int
	}{
		"in use":         {func(*world) {}, 1, 0},
		"too old":        {func(w *world) { w.clock.Advance(48*time.Minute + time.Second) }, 0, 0},
		"changed client": {func(w *world) { w.changeClient("shop", func(c *clientcfg.Client) { c.Version++ }) }, 0, 0},
		"gone client":    {func(w *world) { delete(w.clients, "shop") }, 0, 0},
		"changed policy": {func(w *world) { w.setPolicies(t, ratelimit.DefaultSettings()) }, 0, 0},
		"withdrawn key":  {func(w *world) { w.withdrawKeys() }, 0, 0},
		"dry-run": {func(w *world) {
			s := ratelimit.DefaultSettings()
			s.Mode, s.Default.OverLimit = ratelimit.DryRun, ratelimit.OverLimitReuse
			w.setPolicies(t, s)
		}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := reuseWorld(t)
			w.mustToken("shop", clientCredentials)
			tc.then(w)
			check.OK(t, w.service.SweepLastTokens(t.Context()))
			tokens, sets := w.service.LastTokens()
			check.Equal(t, "tokens", tokens, tc.tokens)
			check.Equal(t, "sets", sets, tc.sets)
		})
	}
}

// TestSweepPredictions: the tokens for dry-run predictions are dropped in the same way.
func TestSweepPredictions(t *testing.T) {
	dryRun := func(s *ratelimit.Settings) { s.Mode = ratelimit.DryRun }
	for name, tc := range map[string]struct {
		then func(w *world)
		left int
	}{
		"in use":       {func(*world) {}, 1},
		"too old":      {func(w *world) { w.clock.Advance(48*time.Minute + time.Second) }, 0},
		"not in force": {func(w *world) { w.setPolicies(t, ratelimit.DefaultSettings()) }, 0},
		"enforced": {func(w *world) {
			s := ratelimit.DefaultSettings()
			s.Default.OverLimit = ratelimit.OverLimitReuse
			w.setPolicies(t, s)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := reuseWorld(t, dryRun)
			w.mustToken("shop", clientCredentials)
			tc.then(w)
			check.OK(t, w.service.SweepLastTokens(t.Context()))
			tokens, predicted := w.service.LastTokens()
			check.Equal(t, "tokens", tokens, 0)
			check.Equal(t, "predicted", predicted, tc.left)
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
	if w.limited("shop", clientCredentials) == nil {
		t.Error("the token was handed out again, although it may have been revoked")
	}
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
	if w.limited("shop", scoped("write")) == nil {
		t.Error("a revoked token was handed out again")
	}
	w.mustToken("shop", scoped("read"))
}
