package e2e

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"
)

var inactive = map[string]any{"active": false}

func TestIntrospection(t *testing.T) {
	s := start(t, unlimited)
	c := s.config("web")
	code, verifier := s.code(newBrowser(t), c)
	token, err := c.Exchange(with(t), code, oauth2.VerifierOption(verifier))
	require.NoError(t, err)

	got := s.introspect("shop", token.AccessToken)
	require.Equal(t, true, got["active"])
	require.Equal(t, "web", got["client_id"])
	require.Equal(t, user, got["username"])
	require.Equal(t, user, got["sub"])
	require.Equal(t, "read", got["scope"])
	require.Equal(t, s.Issuer, got["iss"])
	require.Equal(t, "Bearer", got["token_type"])
	require.Equal(t, verify(t, s, token.AccessToken).ID, got["jti"])

	require.Equal(t, true, s.introspect("web", token.RefreshToken)["active"], "to the client that holds it")
	require.Equal(t, inactive, s.introspect("shop", token.RefreshToken), "to nobody else")
	for _, bad := range []string{"garbage", "a.b.c", token.AccessToken + "x", token.AccessToken[:len(token.AccessToken)-2]} {
		require.Equal(t, inactive, s.introspect("shop", bad), bad)
	}
	requireOAuthError(t, s.post("/introspect", "", url.Values{"token": {token.AccessToken}}), 401, "invalid_client")
	requireOAuthError(t, s.post("/introspect", "shop", url.Values{}), 400, "invalid_request")
}

func TestRevocation(t *testing.T) {
	s := start(t, unlimited)
	c := s.config("web")
	b := newBrowser(t)
	issue := func() *oauth2.Token {
		code, verifier := s.code(b, c)
		token, err := c.Exchange(with(t), code, oauth2.VerifierOption(verifier))
		require.NoError(t, err)
		return token
	}
	revoke := func(clientID, token string) reply {
		return s.post("/revoke", clientID, url.Values{"token": {token}, "token_type_hint": {"refresh_token"}})
	}
	t.Run("a refresh token takes its family along", func(t *testing.T) {
		token := issue()
		r := revoke("web", token.RefreshToken)
		require.Equal(t, http.StatusOK, r.status, r.body)
		require.Equal(t, "no-store", r.header.Get("Cache-Control"))
		require.Equal(t, inactive, s.introspect("web", token.RefreshToken))
		require.Equal(t, inactive, s.introspect("web", token.AccessToken))
		_, err := refresh(with(t), c, token.RefreshToken)
		requireRefused(t, err, 400, "invalid_grant")
	})
	t.Run("an access token goes alone", func(t *testing.T) {
		token := issue()
		require.Equal(t, http.StatusOK, revoke("web", token.AccessToken).status, "a wrong hint does no harm")
		require.Equal(t, inactive, s.introspect("web", token.AccessToken))
		_, err := refresh(with(t), c, token.RefreshToken)
		require.NoError(t, err)
	})
	t.Run("somebody else's token stays", func(t *testing.T) {
		token := issue()
		require.Less(t, revoke("other", token.RefreshToken).status, 500)
		require.Equal(t, true, s.introspect("web", token.RefreshToken)["active"])
	})
	t.Run("an unknown token is revoked enough", func(t *testing.T) {
		require.Equal(t, http.StatusOK, revoke("web", "unknown").status, "RFC 7009 2.2")
	})
	t.Run("revocations survive kill -9", func(t *testing.T) {
		token := issue()
		require.Equal(t, http.StatusOK, revoke("web", token.RefreshToken).status)
		s.kill()
		s.up()
		require.Equal(t, inactive, s.introspect("web", token.AccessToken))
		_, err := refresh(with(t), c, token.RefreshToken)
		requireRefused(t, err, 400, "invalid_grant")
	})
}
