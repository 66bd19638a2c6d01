package grants_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"oauth-server/internal/grants"
)

// TestTokenGrants gets a token by each grant and reads what it says.
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
		"refresh, narrower":  {"shop", func() grants.TokenRequest { r := refreshing(w.tokens("shop").RefreshToken); r.Scope = "admin"; return r }(), "alice", []string{"admin"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			answer := w.mustToken(tc.client, tc.req)
			require.Equal(t, time.Hour, answer.ExpiresIn)
			require.Equal(t, tc.scopes, answer.Scopes)
			require.Equal(t, tc.wantRefresh, answer.RefreshToken != "")

			claims, err := w.ring.Verify(answer.AccessToken, w.clock.Now())
			require.NoError(t, err)
			require.Equal(t, tc.subject, claims.Subject)
			require.Equal(t, tc.client, claims.ClientID)
			require.Equal(t, []string{issuer}, claims.Audience)
			require.Equal(t, tc.scopes, claims.Scopes)
			require.NotEmpty(t, claims.ID)
			require.True(t, claims.ExpiresAt.Equal(start.Add(time.Hour)))
			ofUser := tc.subject != tc.client
			require.Equal(t, ofUser, claims.Family != "")
			require.Equal(t, ofUser, claims.AuthTime.Equal(start))
			require.True(t, w.active(answer.AccessToken))
		})
	}
}
