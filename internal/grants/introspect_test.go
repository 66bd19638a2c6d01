package grants_test

import (
	"fmt"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/keys"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/secret"
)

// Attack (tokens): Learning about tokens of others. A client sees its own tokens and those with
// it as audience. A resource server sees all access tokens. Also grants.TestIntrospectRefuses.
func TestIntrospect(t *testing.T) {
	w := newWorld(t)
	ofUser := w.tokens("shop")
	claims, err := w.ring.Verify(ofUser.AccessToken, start)
	check.OK(t, err)
	ofClient := w.mustToken("daemon", grants.TokenRequest{GrantType: "client_credentials", Scope: "read"})
	clientClaims, err := w.ring.Verify(ofClient.AccessToken, start)
	check.OK(t, err)
	ofCaller := w.mustToken("caller", grants.TokenRequest{GrantType: "client_credentials", Scope: "read"})
	callerClaims, err := w.ring.Verify(ofCaller.AccessToken, start)
	check.OK(t, err)
	w.clients["caller-too"] = &clientcfg.Client{ID: "caller-too", Audience: []string{"https://api.example.com"}, SecretDigest: secret.DigestOf(secretOf("caller-too"))}
	all := []string{"read", "write", "admin"}

	check.Equal(t, "claims", fmt.Sprint(claims.ClientID, claims.Subject, claims.Scopes, claims.Issuer, claims.Audience, claims.IssuedAt, claims.ExpiresAt),
		fmt.Sprint("shop", "alice", all, issuer, []string{issuer}, start, start.Add(time.Hour)))
	user := grants.Introspection{Active: true, TokenType: "Bearer", Username: "alice", Claims: claims}
	client := grants.Introspection{Active: true, TokenType: "Bearer", Claims: clientClaims}
	audience := grants.Introspection{Active: true, TokenType: "Bearer", Claims: callerClaims}
	refresh := grants.Introspection{Active: true, Username: "alice", Claims: keys.Claims{
		ClientID: "shop", Subject: "alice", Scopes: all, Issuer: issuer, IssuedAt: start, ExpiresAt: start.Add(30 * 24 * time.Hour),
	}}
	for name, tc := range map[string]struct {
		asking, token string
		want          grants.Introspection
	}{
		"own access token":               {"shop", ofUser.AccessToken, user},
		"own, no resource server":        {"caller", ofCaller.AccessToken, audience},
		"another's, resource server":     {"shop", ofClient.AccessToken, client},
		"another's access token":         {"other", ofUser.AccessToken, grants.Introspection{}},
		"its audience is the client":     {"other", ofCaller.AccessToken, audience},
		"both may call the same API":     {"caller-too", ofCaller.AccessToken, grants.Introspection{}},
		"own refresh token":              {"shop", ofUser.RefreshToken, refresh},
		"another's refresh token":        {"other", ofUser.RefreshToken, grants.Introspection{}},
		"a refresh token is no bearer's": {"shop", w.tokens("caller").RefreshToken, grants.Introspection{}},
		"unknown":                        {"shop", "nonsense", grants.Introspection{}},
		"forged":                         {"shop", ofUser.AccessToken[:len(ofUser.AccessToken)-4] + "AAAA", grants.Introspection{}},
		"code":                           {"shop", w.code("shop"), grants.Introspection{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := w.service.Introspect(t.Context(), w.query(tc.asking, tc.token))
			check.OK(t, err)
			check.Equal(t, "introspection", got, tc.want)
		})
	}
}

func TestIntrospectRefuses(t *testing.T) {
	w := newWorld(t)
	for name, tc := range map[string]struct {
		q    grants.TokenQuery
		want oautherr.Code
	}{
		"public":       {w.query("app", w.tokens("app").AccessToken), oautherr.InvalidClient},
		"no client":    {grants.TokenQuery{Token: "x"}, oautherr.InvalidClient},
		"wrong secret": {grants.TokenQuery{Credentials: grants.Credentials{Method: grants.AuthPost, ClientID: "shop", Secret: "x"}, Token: "x"}, oautherr.InvalidClient},
		"no token":     {grants.TokenQuery{Credentials: w.credentials("shop")}, oautherr.InvalidRequest},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := w.service.Introspect(t.Context(), tc.q)
			wantCode(t, tc.want, err)
			check.Equal(t, "introspection", got, grants.Introspection{})
		})
	}
}

func TestIntrospectExpiry(t *testing.T) {
	w := newWorld(t)
	tokens := w.tokens("shop")
	w.clock.Advance(time.Hour - time.Nanosecond)
	w.wantActive(true, tokens.AccessToken)
	w.clock.Advance(time.Nanosecond)
	w.wantActive(false, tokens.AccessToken)
	w.wantActive(true, tokens.RefreshToken)
	w.clock.Advance(30 * 24 * time.Hour)
	w.wantActive(false, tokens.RefreshToken)
}

// TestIntrospectClaimedRefreshToken: a claimed refresh token is not active, and introspecting it is
// not a replay.
func TestIntrospectClaimedRefreshToken(t *testing.T) {
	w := newWorld(t)
	first := w.tokens("shop")
	second := w.mustToken("shop", refreshing(first.RefreshToken))
	w.wantActive(false, first.RefreshToken)
	w.wantActive(true, second.RefreshToken)
}

func TestBearer(t *testing.T) {
	w := newWorld(t)
	tokens := w.tokens("shop")
	claims, err := w.service.Bearer(t.Context(), tokens.AccessToken)
	check.OK(t, err)
	check.Equal(t, "claims.ClientID", claims.ClientID, "shop")
	check.Equal(t, "claims.Subject", claims.Subject, "alice")
	for name, bad := range map[string]string{
		"empty": "", "nonsense": "a.b.c", "a refresh token": tokens.RefreshToken,
		"forged": tokens.AccessToken[:len(tokens.AccessToken)-4] + "AAAA",
	} {
		_, err = w.service.Bearer(t.Context(), bad)
		check.ErrorIs(t, err, grants.ErrBearer, name)
	}
}

func TestBearerEndsWithWhatItRestsOn(t *testing.T) {
	for name, end := range map[string]func(*world, grants.TokenResponse){
		"time": func(w *world, _ grants.TokenResponse) { w.clock.Advance(time.Hour) },
		"revocation": func(w *world, r grants.TokenResponse) {
			q := w.query("shop", r.AccessToken)
			check.OK(t, w.service.Revoke(t.Context(), q))
		},
		"its user": func(w *world, _ grants.TokenResponse) { check.OK(t, w.store.DeleteUser(t.Context(), "alice", nil)) },
		"its client": func(w *world, _ grants.TokenResponse) {
			clear(w.clients)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tokens := w.tokens("shop")
			end(w, tokens)
			_, err := w.service.Bearer(t.Context(), tokens.AccessToken)
			check.ErrorIs(t, err, grants.ErrBearer)
		})
	}
}

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
			q := w.query("shop", tc.revoke(first, second))
			q.Hint = tc.hint
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
		"another's access":     {w.query("other", tokens.AccessToken), oautherr.InvalidGrant},
		"another's refresh":    {w.query("other", tokens.RefreshToken), oautherr.InvalidGrant},
		"another's, by public": {w.query("app", tokens.RefreshToken), oautherr.InvalidGrant},
	} {
		t.Run(name, func(t *testing.T) {
			wantCode(t, tc.want, w.service.Revoke(t.Context(), tc.q))
			w.wantActive(true, tokens.AccessToken)
			w.wantActive(true, tokens.RefreshToken)
		})
	}
	check.OK(t, w.service.Revoke(t.Context(), w.query("app", app.RefreshToken)))
	w.wantActive(false, app.AccessToken) // a public client revokes its own token
}

// TestRevokedFamilyOutlivesItsTokens: the revocation is kept as long as any token of the family
// could be valid, under whichever setting it was issued.
func TestRevokedFamilyOutlivesItsTokens(t *testing.T) {
	w, f := failingWorld(t, func(o *grants.Options) { o.RefreshTokenLifetime = 90 * 24 * time.Hour })
	first := w.tokens("shop")
	w.service.SetRefreshTokenLifetime(time.Hour)
	w.revoke(first.RefreshToken)
	if f.RevokedUntil.Before(start.Add(90*24*time.Hour + time.Hour)) {
		t.Fatalf("revoked until %v only", f.RevokedUntil)
	}
}
