package grants_test

import (
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/oautherr"
)

const grace = 30 * time.Second

func graceful(o *grants.Options) { o.RefreshGrace = grace }

// refresh presents a refresh token of shop that must be valid.
func (w *world) refresh(token string) grants.TokenResponse {
	w.tb.Helper()
	return w.mustToken("shop", refreshing(token))
}

// wantReplay presents a refresh token of shop that must be treated as stolen.
func (w *world) wantReplay(token string) {
	w.tb.Helper()
	_, err := w.token("shop", refreshing(token))
	wantCode(w.tb, oautherr.InvalidGrant, err)
	check.ErrorSays(w.tb, err, "already used")
}

// TestRepeatedRefresh: a client that lost the response gets the same successor again, with a new
// access token, until the successor is used.
//
// Attack (tokens): A lost response looks like theft. Within the grace period the client gets the
// same successor, until the successor is used. Also grants.TestGenerations,
// e2e.TestRefreshThroughFaults.
func TestRepeatedRefresh(t *testing.T) {
	w := newWorld(t, graceful)
	first := w.tokens("shop")
	second := w.refresh(first.RefreshToken)
	for range 3 {
		w.clock.Advance(grace/3 - time.Nanosecond)
		again := w.refresh(first.RefreshToken)
		check.Equal(t, "successor", again.RefreshToken, second.RefreshToken)
		check.Equal(t, "the access token is another", again.AccessToken != second.AccessToken, true)
		w.wantActive(true, again.AccessToken)
	}
	narrow := refreshing(first.RefreshToken)
	narrow.Scope = "read"
	again := w.mustToken("shop", narrow)
	check.Equal(t, "successor of a refresh with another scope", again.RefreshToken, second.RefreshToken)
	check.Equal(t, "scopes", again.Scopes, []string{"read"})
	wider := w.refresh(second.RefreshToken)
	check.Equal(t, "scopes of the successor", wider.Scopes, first.Scopes)

	w.wantReplay(first.RefreshToken) // its successor was used
	for _, token := range []string{again.AccessToken, wider.AccessToken, wider.RefreshToken} {
		w.wantActive(false, token)
	}
}

// TestRepetitionIsRefused: a repetition is refused whenever the token itself would be.
func TestRepetitionIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(w *world, second grants.TokenResponse)
		by   string
	}{
		"revoked": {func(w *world, second grants.TokenResponse) {
			check.OK(w.tb, w.service.Revoke(w.tb.Context(), grants.TokenQuery{Credentials: w.credentials("shop"), Token: second.RefreshToken}))
		}, "shop"},
		"the user is gone": {func(w *world, _ grants.TokenResponse) {
			check.OK(w.tb, w.store.DeleteUser(w.tb.Context(), "alice", nil))
		}, "shop"},
		"the client is another":       {func(w *world, _ grants.TokenResponse) { w.replaceClient("shop") }, "shop"},
		"the client has lost a grant": {func(w *world, _ grants.TokenResponse) { w.clients["shop"].Grants = clientcfg.Grants()[:2] }, "shop"},
		"another client presents it":  {func(*world, grants.TokenResponse) {}, "other"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, graceful)
			first := w.tokens("shop")
			tc.edit(w, w.refresh(first.RefreshToken))
			_, err := w.token(tc.by, refreshing(first.RefreshToken))
			if code := check.As[*grants.Error](t, err).Code; code != oautherr.InvalidGrant && code != oautherr.UnauthorizedClient {
				t.Fatalf("error %v", err)
			}
		})
	}
}

// TestRepetitionWritesNothing: a repetition writes nothing, and counts against the limit.
func TestRepetitionWritesNothing(t *testing.T) {
	w, f := failingWorld(t, graceful)
	first := w.tokens("shop")
	w.refresh(first.RefreshToken)
	var operations []string
	f.Begun = func(operation string) { operations = append(operations, operation) }
	w.refresh(first.RefreshToken)
	slices.Sort(operations)
	check.Equal(t, "operations", operations, []string{"Get grants", "Get revocations", "Get users"})
}

func TestRepetitionIsLimited(t *testing.T) {
	w, _ := limitedWorld(t)
	w.reopen(graceful)
	first := w.tokens("shop")
	w.refresh(first.RefreshToken)
	w.refresh(first.RefreshToken)
	if w.limited("shop", refreshing(first.RefreshToken)) == nil {
		t.Fatal("a repetition passed the limit of three requests")
	}
}

// TestRefreshedMeanwhile: another request claims the token between look and take.
func TestRefreshedMeanwhile(t *testing.T) {
	t.Run("once", func(t *testing.T) {
		w, f := failingWorld(t, graceful)
		first := w.tokens("shop")
		var meanwhile grants.TokenResponse
		f.Meanwhile("Get grants", func() { meanwhile = w.refresh(first.RefreshToken) })
		check.Equal(t, "successor", w.refresh(first.RefreshToken).RefreshToken, meanwhile.RefreshToken)
	})
	t.Run("and its successor too", func(t *testing.T) {
		w, f := failingWorld(t, graceful)
		first := w.tokens("shop")
		f.Meanwhile("Get grants", func() { w.refresh(w.refresh(first.RefreshToken).RefreshToken) })
		w.wantReplay(first.RefreshToken)
	})
	t.Run("and the family was revoked", func(t *testing.T) {
		w, f := failingWorld(t, graceful)
		first := w.tokens("shop")
		f.Meanwhile("Get grants", func() {
			second := w.refresh(first.RefreshToken)
			check.OK(t, w.service.Revoke(t.Context(), grants.TokenQuery{Credentials: w.credentials("shop"), Token: second.RefreshToken}))
		})
		_, err := w.token("shop", refreshing(first.RefreshToken))
		wantCode(t, oautherr.InvalidGrant, err)
	})
}

// TestSixteenRefreshesAtOnce: all get the same successor, and different access tokens.
func TestSixteenRefreshesAtOnce(t *testing.T) {
	const attempts, rounds = 16, 20
	w := newWorld(t, graceful)
	for range rounds {
		first := w.tokens("shop")
		var mu sync.Mutex
		refresh, access := map[string]bool{}, map[string]bool{}
		_, failures := atOnce(attempts, func() error {
			answer, err := w.token("shop", refreshing(first.RefreshToken))
			mu.Lock()
			defer mu.Unlock()
			refresh[answer.RefreshToken], access[answer.AccessToken] = true, true
			return err
		})
		check.Equal(t, "failures", len(failures), 0)
		check.Equal(t, "refresh tokens", len(refresh), 1)
		check.Equal(t, "access tokens", len(access), attempts)
		for next := range refresh {
			w.refresh(next)
		}
	}
}

// TestRepeatedAtAnotherInstance: the grace period starts by the clock of the instance that rotated,
// and ends by the clock of the instance that serves the repetition. A start further in the future
// than the allowed clock skew is not accepted.
func TestRepeatedAtAnotherInstance(t *testing.T) {
	for name, tc := range map[string]struct {
		behind time.Duration
		pass   bool
	}{
		"in step": {0, true}, "behind": {59 * time.Second, true}, "far behind": {time.Minute, false},
		"ahead": {-29 * time.Second, true}, "ahead by the grace period": {-grace, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, graceful)
			w.clock.Advance(time.Hour)
			first := w.tokens("shop")
			w.refresh(first.RefreshToken)
			w.reopen(func(o *grants.Options) { o.Now = func() time.Time { return w.clock.Now().Add(-tc.behind) } })
			_, err := w.token("shop", refreshing(first.RefreshToken))
			check.Equal(t, "passes", err == nil, tc.pass)
		})
	}
}

// TestRefreshWithoutTheData: if the store has lost its data, the error is not invalid_grant,
// because the refresh token becomes valid again after a restore.
func TestRefreshWithoutTheData(t *testing.T) {
	w := newWorld(t)
	token := w.tokens("shop").RefreshToken
	empty, clients := testworld.OpenStore(t, filepath.Join(t.TempDir(), "empty.db")), stopped{w.clients, nil, errDown}
	lost := *w
	lost.reopen(func(o *grants.Options) {
		o.Store, o.Users, o.Clients = grants.NewRepository(empty), empty.Users, clients
	})
	_, err := lost.token("shop", refreshing(token))
	wantCode(t, oautherr.TemporarilyUnavailable, err)
	clients.err = nil
	lost.reopen(func(o *grants.Options) { o.Clients = clients })
	_, err = lost.token("shop", refreshing(token))
	wantCode(t, oautherr.InvalidGrant, err)
	w.reopen(func(o *grants.Options) {
		o.Store, o.Users, o.Clients = grants.NewRepository(w.store), w.store.Users, w.clients
	})
	_, err = w.token("shop", refreshing(token))
	check.OK(t, err)
}
