package grants_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
)

// TestTokenGrants gets a token with each grant and reads its claims.
func TestTokenGrants(t *testing.T) {
	w := newWorld(t)
	for name, tc := range map[string]struct {
		client      string
		req         grants.TokenRequest
		subject     string
		scopes      []string
		wantRefresh bool
	}{
		"client_credentials": {"shop", grants.TokenRequest{GrantType: "client_credentials"}, "shop", []string{"read", "write", "admin"}, false},
		"narrower scope":     {"shop", grants.TokenRequest{GrantType: "client_credentials", Scope: "write read write"}, "shop", []string{"write", "read"}, false},
		"password":           {"shop", grants.TokenRequest{GrantType: "password", Username: "bob", Password: password, Scope: "read"}, "bob", []string{"read"}, true},
		"code":               {"shop", w.redemption("shop", w.code("shop")), "alice", []string{"read", "write", "admin"}, true},
		"code, public":       {"app", w.redemption("app", w.code("app")), "alice", []string{"read", "write"}, true},
		"code, no refresh":   {"login", w.redemption("login", w.code("login")), "alice", []string{"read", "write", "admin"}, false},
		"refresh":            {"shop", refreshing(w.tokens("shop").RefreshToken), "alice", []string{"read", "write", "admin"}, true},
		"refresh, narrower": {"shop", func() grants.TokenRequest {
			r := refreshing(w.tokens("shop").RefreshToken)
			r.Scope = "admin"
			return r
		}(), "alice", []string{"admin"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			answer := w.mustToken(tc.client, tc.req)
			check.Equal(t, "answer.ExpiresIn", answer.ExpiresIn, time.Hour)
			check.Equal(t, "answer.Scopes", answer.Scopes, tc.scopes)
			check.Equal(t, "has a refresh token", answer.RefreshToken != "", tc.wantRefresh)

			claims, err := w.ring.Verify(answer.AccessToken, w.clock.Now())
			check.OK(t, err)
			check.Equal(t, "claims.Subject", claims.Subject, tc.subject)
			check.Equal(t, "claims.ClientID", claims.ClientID, tc.client)
			check.Equal(t, "claims.Audience", claims.Audience, []string{issuer})
			check.Equal(t, "claims.Scopes", claims.Scopes, tc.scopes)
			if claims.ID == "" {
				t.Fatal("no jti")
			}
			check.Equal(t, "exp", claims.ExpiresAt, start.Add(time.Hour))
			ofUser := tc.subject != tc.client
			check.Equal(t, "has a family", claims.Family != "", ofUser)
			check.Equal(t, "has auth_time", claims.AuthTime.Equal(start), ofUser)
			w.wantActive(true, answer.AccessToken)
		})
	}
}
