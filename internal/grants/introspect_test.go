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
			got, err := w.service.Introspect(t.Context(), grants.TokenQuery{Credentials: w.credentials(tc.asking), Token: tc.token})
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
		"public":       {grants.TokenQuery{Credentials: w.credentials("app"), Token: w.tokens("app").AccessToken}, oautherr.InvalidClient},
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
