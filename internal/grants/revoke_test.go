package grants_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/oautherr"
)

// TestRevoke introspects three tokens of one family after one of them was revoked.
//
// Attack (rfc9700): 2.2.1, 4.9 sender-constrained tokens. **Lacking**: no DPoP or mTLS. Access
// tokens can be revoked. Also grants.TestRevokedFamilyOutlivesItsTokens.
func TestRevoke(t *testing.T) {
	for name, tc := range map[string]struct {
		revoke      func(first, second grants.TokenResponse) string
		hint        string
		wantFirst   bool
		wantSecond  bool
		wantRefresh bool
	}{
		"an access token alone":       {func(first, _ grants.TokenResponse) string { return first.AccessToken }, "access_token", false, true, true},
		"the hint may be wrong":       {func(first, _ grants.TokenResponse) string { return first.AccessToken }, "refresh_token", false, true, true},
		"the hint may be unknown":     {func(first, _ grants.TokenResponse) string { return first.AccessToken }, "pasta", false, true, true},
		"a refresh token, the family": {func(_, second grants.TokenResponse) string { return second.RefreshToken }, "", false, false, false},
		"a claimed one, the family":   {func(first, _ grants.TokenResponse) string { return first.RefreshToken }, "", false, false, false},
		"an unknown one, nothing":     {func(grants.TokenResponse, grants.TokenResponse) string { return "nonsense" }, "", true, true, true},
		"a forged one, nothing":       {func(grants.TokenResponse, grants.TokenResponse) string { return "a.b.c" }, "", true, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			first := w.tokens("shop")
			second := w.mustToken("shop", refreshing(first.RefreshToken))
			q := grants.TokenQuery{Credentials: w.credentials("shop"), Token: tc.revoke(first, second), Hint: tc.hint}
			for range 2 { // Revoking twice is no error (RFC 7009 2.2).
				check.OK(t, w.service.Revoke(t.Context(), q))
			}
			w.wantActive(tc.wantFirst, first.AccessToken)
			w.wantActive(tc.wantSecond, second.AccessToken)
			w.wantActive(tc.wantRefresh, second.RefreshToken)
			_, err := w.token("shop", refreshing(second.RefreshToken))
			check.Equal(t, "refresh passes", err == nil, tc.wantRefresh)
		})
	}
}

func TestRevokeRefuses(t *testing.T) {
	w := newWorld(t)
	tokens := w.tokens("shop")
	app := w.tokens("app")
	for name, tc := range map[string]struct {
		q    grants.TokenQuery
		want oautherr.Code
	}{
		"no token":             {grants.TokenQuery{Credentials: w.credentials("shop")}, oautherr.InvalidRequest},
		"wrong secret":         {grants.TokenQuery{Credentials: grants.Credentials{Method: grants.AuthBasic, ClientID: "shop", Secret: "x"}, Token: tokens.AccessToken}, oautherr.InvalidClient},
		"another's access":     {grants.TokenQuery{Credentials: w.credentials("other"), Token: tokens.AccessToken}, oautherr.InvalidGrant},
		"another's refresh":    {grants.TokenQuery{Credentials: w.credentials("other"), Token: tokens.RefreshToken}, oautherr.InvalidGrant},
		"another's, by public": {grants.TokenQuery{Credentials: w.credentials("app"), Token: tokens.RefreshToken}, oautherr.InvalidGrant},
	} {
		t.Run(name, func(t *testing.T) {
			wantCode(t, tc.want, w.service.Revoke(t.Context(), tc.q))
			w.wantActive(true, tokens.AccessToken)
			w.wantActive(true, tokens.RefreshToken)
		})
	}
	check.OK(t, w.service.Revoke(t.Context(), grants.TokenQuery{Credentials: w.credentials("app"), Token: app.RefreshToken}))
	w.wantActive(false, app.AccessToken) // a public client revokes its own token
}

// TestRevokedFamilyOutlivesItsTokens: the revocation is kept as long as any token of the family
// could be valid, under whichever setting it was issued.
func TestRevokedFamilyOutlivesItsTokens(t *testing.T) {
	w, f := failingWorld(t, func(o *grants.Options) { o.RefreshTokenLifetime = 90 * 24 * time.Hour })
	first := w.tokens("shop")
	w.service.SetRefreshTokenLifetime(time.Hour)
	check.OK(t, w.service.Revoke(t.Context(), grants.TokenQuery{Credentials: w.credentials("shop"), Token: first.RefreshToken}))
	if f.RevokedUntil.Before(start.Add(90*24*time.Hour + time.Hour)) {
		t.Fatalf("revoked until %v only", f.RevokedUntil)
	}
}
