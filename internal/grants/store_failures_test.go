package grants_test

import (
	"context"
	"strings"
	"testing"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/oautherr"
)

// eachStoreFailure makes every operation of the store fail in every flow.
func eachStoreFailure(t *testing.T, cause error) {
	t.Helper()
	flows := map[string]struct {
		operations []string
		prepare    func(w *world) func() error
	}{
		"code": {[]string{"Get grants", "Get users", "Put grants"}, func(w *world) func() error {
			req := w.redemption("shop", w.code("shop"))
			return func() error { _, err := w.token("shop", req); return err }
		}},
		"refresh": {[]string{"Get grants", "Get revocations", "Get users", "Put grants"}, func(w *world) func() error {
			req := refreshing(w.tokens("shop").RefreshToken)
			return func() error { _, err := w.token("shop", req); return err }
		}},
		"password": {[]string{"Get users", "Put grants"}, func(w *world) func() error {
			return func() error {
				_, err := w.token("shop", byPassword("bob", password))
				return err
			}
		}},
		"approve": {[]string{"Put grants"}, func(w *world) func() error {
			prompt := w.prompted("shop")
			return func() error { _, err := w.approve(prompt, w.session()); return err }
		}},
		"sign in": {[]string{"Get users", "Put sessions"}, func(w *world) func() error {
			return func() error {
				_, _, err := w.service.SignIn(t.Context(), accounts.SignIn{Username: "bob", Password: password})
				return err
			}
		}},
		"session": {[]string{"Get sessions", "Get users"}, func(w *world) func() error {
			cookie, _, err := w.service.SignIn(t.Context(), accounts.SignIn{Username: "bob", Password: password})
			check.OK(t, err)
			return func() error { _, err := w.service.Session(t.Context(), cookie); return err }
		}},
		"sign out": {[]string{"Delete sessions"}, func(w *world) func() error {
			return func() error { return w.service.SignOut(t.Context(), "x") }
		}},
		"introspect access token": {[]string{"Get revocations", "Get users"}, func(w *world) func() error {
			q := w.query("shop", w.tokens("shop").AccessToken)
			return func() error { _, err := w.service.Introspect(t.Context(), q); return err }
		}},
		"introspect refresh token": {[]string{"Get grants", "Get revocations", "Get users"}, func(w *world) func() error {
			q := w.query("shop", w.tokens("shop").RefreshToken)
			return func() error { _, err := w.service.Introspect(t.Context(), q); return err }
		}},
		"revoke access token": {[]string{"PutAll revocations"}, func(w *world) func() error {
			q := w.query("shop", w.tokens("shop").AccessToken)
			return func() error { return w.service.Revoke(t.Context(), q) }
		}},
		"revoke refresh token": {[]string{"Get grants", "PutAll revocations"}, func(w *world) func() error {
			q := w.query("shop", w.tokens("shop").RefreshToken)
			return func() error { return w.service.Revoke(t.Context(), q) }
		}},
	}
	for name, flow := range flows {
		for _, operation := range flow.operations {
			t.Run(name+", "+operation, func(t *testing.T) {
				w, f := failingWorld(t)
				try := flow.prepare(w)
				f.Operation, f.Err = operation, cause
				err := try()
				wantCode(t, oautherr.TemporarilyUnavailable, err)
				oauthErr := check.As[*grants.Error](t, err)
				if strings.Contains(oauthErr.Description, cause.Error()) {
					t.Fatalf("the description %q shows the cause", oauthErr.Description)
				}
				check.ErrorSays(t, err, cause.Error()) // for the log
				check.Equal(t, "f.Hits", f.Hits, 1)

				f.Operation = ""
				check.OK(t, try(), "the failed attempt burnt the grant")
			})
		}
	}
}

// TestStoreFailsDuringReplay: if revoking the family fails, the response does not claim that it was
// revoked.
func TestStoreFailsDuringReplay(t *testing.T) {
	w, f := failingWorld(t)
	first := w.tokens("shop")
	w.mustToken("shop", refreshing(first.RefreshToken))
	f.Operation, f.Err = "PutAll revocations", unhashable{"down"}
	w.wantRefused(oautherr.TemporarilyUnavailable, "shop", refreshing(first.RefreshToken))
	f.Operation = ""
	w.wantRefused(oautherr.InvalidGrant, "shop", refreshing(first.RefreshToken))
}

// TestReplayerHangsUp: the family is revoked even if the client disconnects.
func TestReplayerHangsUp(t *testing.T) {
	w, f := failingWorld(t)
	first := w.tokens("shop")
	second := w.mustToken("shop", refreshing(first.RefreshToken))
	ctx, cancel := context.WithCancel(t.Context())
	f.Meanwhile("Get grants", cancel)
	req := refreshing(first.RefreshToken)
	req.Credentials = w.credentials("shop")
	_, err := w.service.Token(ctx, req)
	wantCode(t, oautherr.InvalidGrant, err)
	w.wantActive(false, second.AccessToken)
}
