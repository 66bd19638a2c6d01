package e2e

import (
	"net/http"
	"net/url"
	"testing"

	"golang.org/x/oauth2"

	"oauth-server/internal/check"
)

var inactive = map[string]any{"active": false}

func TestIntrospection(t *testing.T) {
	s := start(t, unlimited)
	token := s.signIn(with(t), s.config("web"))

	got := s.introspect("shop", token.AccessToken)
	for name, want := range map[string]any{
		"active": true, "client_id": "web", "username": user, "sub": user, "scope": "read", "iss": s.Issuer,
		"token_type": "Bearer", "jti": verify(t, s, token.AccessToken).ID,
	} {
		check.Equal(t, name, got[name], want)
	}
	check.Equal(t, "active, to the client that holds the refresh token", s.introspect("web", token.RefreshToken)["active"], true)
	check.Equal(t, "answer to another client", s.introspect("shop", token.RefreshToken), inactive)
	check.Equal(t, "active, to the client of the token", s.introspect("web", token.AccessToken)["active"], true)
	check.Equal(t, "answer to a client that is no resource server", s.introspect("other", token.AccessToken), inactive)
	requireOAuthError(t, s.post("/introspect", "", url.Values{"client_id": {"native"}, "token": {token.AccessToken}}), 401, "invalid_client")
	for _, bad := range []string{"garbage", "a.b.c", token.AccessToken + "x", token.AccessToken[:len(token.AccessToken)-2]} {
		check.Equal(t, "answer about "+bad, s.introspect("shop", bad), inactive)
	}
	requireOAuthError(t, s.post("/introspect", "", url.Values{"token": {token.AccessToken}}), 401, "invalid_client")
	requireOAuthError(t, s.post("/introspect", "shop", url.Values{}), 400, "invalid_request")
}

// TestQueryLimits: /introspect and /revoke have limits for each client, and those of a public client
// for each address.
func TestQueryLimits(t *testing.T) {
	s := start(t, unlimited+"inspection: { introspect_per_second: 1, revoke_per_second: 1 }\n")
	for path, clientID := range map[string]string{"/introspect": "other", "/revoke": "native"} {
		form := url.Values{"token": {"random"}}
		if secrets[clientID] == "" {
			form.Set("client_id", clientID)
			clientID = ""
		}
		var last reply
		for range 12 { // ten, one more if a frame ends meanwhile, and the one that is denied
			last = s.post(path, clientID, form)
		}
		requireOAuthError(t, last, http.StatusTooManyRequests, "temporarily_unavailable")
		check.Equal(t, "has Retry-After", last.header.Get("Retry-After") != "", true)
	}
	check.Equal(t, "another client", s.introspect("shop", "random"), inactive)
}

func TestRevocation(t *testing.T) {
	s := start(t, unlimited)
	c := s.config("web")
	b := newBrowser(t)
	issue := func() *oauth2.Token {
		code, verifier := s.code(b, c)
		token, err := c.Exchange(with(t), code, oauth2.VerifierOption(verifier))
		check.OK(t, err)
		return token
	}
	revoke := func(clientID, token string) reply {
		return s.post("/revoke", clientID, url.Values{"token": {token}, "token_type_hint": {"refresh_token"}})
	}
	t.Run("a refresh token takes its family along", func(t *testing.T) {
		token := issue()
		r := revoke("web", token.RefreshToken)
		r.requireStatus(t, http.StatusOK)
		check.Equal(t, "Cache-Control", r.header.Get("Cache-Control"), "no-store")
		check.Equal(t, "the refresh token", s.introspect("web", token.RefreshToken), inactive)
		check.Equal(t, "the access token", s.introspect("web", token.AccessToken), inactive)
		_, err := refresh(with(t), c, token.RefreshToken)
		requireRefused(t, err, 400, "invalid_grant")
	})
	t.Run("an access token goes alone", func(t *testing.T) {
		token := issue()
		revoke("web", token.AccessToken).requireStatus(t, http.StatusOK) // the hint is wrong, which does no harm
		check.Equal(t, "the access token", s.introspect("web", token.AccessToken), inactive)
		_, err := refresh(with(t), c, token.RefreshToken)
		check.OK(t, err)
	})
	t.Run("the token of another client stays", func(t *testing.T) {
		token := issue()
		if r := revoke("other", token.RefreshToken); r.status >= 500 {
			t.Fatalf("status %d: %s", r.status, r.body)
		}
		check.Equal(t, "active", s.introspect("web", token.RefreshToken)["active"], true)
	})
	t.Run("an unknown token is revoked enough", func(t *testing.T) {
		revoke("web", "unknown").requireStatus(t, http.StatusOK) // RFC 7009 section 2.2
	})
	t.Run("revocations survive kill -9", func(t *testing.T) {
		token := issue()
		revoke("web", token.RefreshToken).requireStatus(t, http.StatusOK)
		s.kill()
		s.up()
		check.Equal(t, "the access token", s.introspect("web", token.AccessToken), inactive)
		_, err := refresh(with(t), c, token.RefreshToken)
		requireRefused(t, err, 400, "invalid_grant")
	})
}
