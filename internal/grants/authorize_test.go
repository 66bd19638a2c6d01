package grants_test

import (
	"errors"
	"testing"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/oautherr"
)

func TestAuthorizePrompt(t *testing.T) {
	w := newWorld(t)
	req := w.authorizeRequest("shop")
	req.Scope = "write"
	got, err := w.service.Authorize(t.Context(), req)
	check.OK(t, err)
	check.Equal(t, "prompt", got, &grants.Prompt{
		Client: w.clients["shop"], RedirectURI: callback, RedirectURISent: true,
		Scopes: []string{"write"}, State: "xyz", Challenge: s256(verifier),
	})
}

func TestAuthorizeRefuses(t *testing.T) {
	w := newWorld(t)
	w.clients["service"] = &clientcfg.Client{ID: "service", Grants: []clientcfg.Grant{clientcfg.ClientCredentials}, RedirectURIs: []string{callback}}
	for name, tc := range map[string]struct {
		client   string
		edit     func(*grants.AuthorizeRequest)
		want     oautherr.Code
		redirect bool
	}{
		"no client_id":          {"shop", func(r *grants.AuthorizeRequest) { r.ClientID = "" }, oautherr.InvalidRequest, false},
		"unknown client":        {"shop", func(r *grants.AuthorizeRequest) { r.ClientID = "nobody" }, oautherr.InvalidRequest, false},
		"unregistered redirect": {"shop", func(r *grants.AuthorizeRequest) { r.RedirectURI = "https://evil.example.com" }, oautherr.InvalidRequest, false},
		"which redirect":        {"app", func(r *grants.AuthorizeRequest) { r.RedirectURI = "" }, oautherr.InvalidRequest, false},
		"no response_type":      {"shop", func(r *grants.AuthorizeRequest) { r.ResponseType = "" }, oautherr.InvalidRequest, true},
		"implicit":              {"shop", func(r *grants.AuthorizeRequest) { r.ResponseType = "token" }, oautherr.UnsupportedResponseType, true},
		"hybrid":                {"shop", func(r *grants.AuthorizeRequest) { r.ResponseType = "code token" }, oautherr.UnsupportedResponseType, true},
		"not registered for it": {"service", func(*grants.AuthorizeRequest) {}, oautherr.UnauthorizedClient, true},
		"scope not registered":  {"shop", func(r *grants.AuthorizeRequest) { r.Scope = "root" }, oautherr.InvalidScope, true},
		"scope malformed":       {"shop", func(r *grants.AuthorizeRequest) { r.Scope = "a\tb" }, oautherr.InvalidScope, true},
		"challenge too short":   {"shop", func(r *grants.AuthorizeRequest) { r.CodeChallenge = "abc" }, oautherr.InvalidRequest, true},
		"challenge too long":    {"shop", func(r *grants.AuthorizeRequest) { r.CodeChallenge += "a" }, oautherr.InvalidRequest, true},
		"challenge of no kind":  {"shop", func(r *grants.AuthorizeRequest) { r.CodeChallenge = r.CodeChallenge[:42] + "=" }, oautherr.InvalidRequest, true},
		"unknown method":        {"shop", func(r *grants.AuthorizeRequest) { r.CodeChallengeMethod = "s256" }, oautherr.InvalidRequest, true},
		"method alone":          {"exempt", func(r *grants.AuthorizeRequest) { r.CodeChallenge = "" }, oautherr.InvalidRequest, true},
		"no PKCE":               {"shop", func(r *grants.AuthorizeRequest) { r.CodeChallenge, r.CodeChallengeMethod = "", "" }, oautherr.InvalidRequest, true},
	} {
		t.Run(name, func(t *testing.T) {
			req := w.authorizeRequest(tc.client)
			tc.edit(&req)
			_, err := w.service.Authorize(t.Context(), req)
			wantCode(t, tc.want, err)
			var redirect *grants.RedirectError
			check.Equal(t, "sent to the client by redirect", errors.As(err, &redirect), tc.redirect)
			if tc.redirect {
				check.Equal(t, "redirect.RedirectURI", redirect.RedirectURI, req.RedirectURI)
				check.Equal(t, "redirect.State", redirect.State, "xyz")
			}
		})
	}
}

// TestRedirectURIAtToken: the redirect_uri of the authorization request determines the one that the
// token request must send (RFC 6749 4.1.3).
//
// Attack (rfc9700): 4.5 code injection. A code is bound to its client, redirect URI and
// challenge. Also grants.TestTokenRefuses.
func TestRedirectURIAtToken(t *testing.T) {
	w := newWorld(t)
	w.clients["shop"].RedirectURIs = []string{callback}
	left := func(r *grants.AuthorizeRequest) { r.RedirectURI = "" }
	loopback := func(r *grants.AuthorizeRequest) { r.RedirectURI = "http://127.0.0.1:49152/callback" }
	for name, tc := range map[string]struct {
		client string
		edit   func(*grants.AuthorizeRequest)
		token  string
		want   oautherr.Code
	}{
		"sent, repeated":               {"shop", func(*grants.AuthorizeRequest) {}, callback, ""},
		"sent, left out":               {"shop", func(*grants.AuthorizeRequest) {}, "", oautherr.InvalidRequest},
		"sent, another":                {"shop", func(*grants.AuthorizeRequest) {}, "https://evil.example.com", oautherr.InvalidGrant},
		"left out, left out":           {"shop", left, "", ""},
		"left out, the registered":     {"shop", left, callback, ""},
		"left out, another":            {"shop", left, "https://evil.example.com", oautherr.InvalidGrant},
		"loopback, the same port":      {"app", loopback, "http://127.0.0.1:49152/callback", ""},
		"loopback, as registered":      {"app", loopback, "http://127.0.0.1/callback", oautherr.InvalidGrant},
		"loopback, another port":       {"app", loopback, "http://127.0.0.1:49153/callback", oautherr.InvalidGrant},
		"loopback, another registered": {"app", loopback, "com.example.app:/callback", oautherr.InvalidGrant},
	} {
		t.Run(name, func(t *testing.T) {
			req := w.redemption(tc.client, w.code(tc.client, tc.edit))
			req.RedirectURI = tc.token
			_, err := w.token(tc.client, req)
			if tc.want == "" {
				check.OK(t, err)
				return
			}
			wantCode(t, tc.want, err)
		})
	}
}

func TestApproveNeedsASession(t *testing.T) {
	w := newWorld(t)
	prompt, err := w.service.Authorize(t.Context(), w.authorizeRequest("shop"))
	check.OK(t, err)
	session := w.session()
	w.clock.Advance(time.Hour)
	_, err = w.approve(prompt, session)
	check.ErrorIs(t, err, accounts.ErrNoSession)
}

// TestApproveChecksTheRedirectAgain: the registration may have changed since the prompt.
func TestApproveChecksTheRedirectAgain(t *testing.T) {
	w := newWorld(t)
	prompt, err := w.service.Authorize(t.Context(), w.authorizeRequest("shop"))
	check.OK(t, err)
	prompt.RedirectURI = "https://evil.example.com"
	_, err = w.approve(prompt, w.session())
	wantCode(t, oautherr.InvalidGrant, err)
}

func TestAuthTimeIsWhenTheUserSignedIn(t *testing.T) {
	w := newWorld(t)
	session := w.session()
	w.clock.Advance(30 * time.Minute)
	prompt, err := w.service.Authorize(t.Context(), w.authorizeRequest("shop"))
	check.OK(t, err)
	code, err := w.approve(prompt, session)
	check.OK(t, err)
	tokens := w.mustToken("shop", w.redemption("shop", code))
	w.clock.Advance(time.Hour)
	tokens = w.mustToken("shop", refreshing(tokens.RefreshToken))
	claims, err := w.ring.Verify(tokens.AccessToken, w.clock.Now())
	check.OK(t, err)
	check.Equal(t, "auth_time", claims.AuthTime, start)
	check.Equal(t, "iat", claims.IssuedAt, start.Add(90*time.Minute))
}
