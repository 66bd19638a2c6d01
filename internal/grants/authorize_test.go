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
	prompt := w.prompted("shop")
	session := w.session()
	w.clock.Advance(time.Hour)
	_, err := w.approve(prompt, session)
	check.ErrorIs(t, err, accounts.ErrNoSession)
}

// TestApproveChecksTheRedirectAgain: the registration may have changed since the prompt.
func TestApproveChecksTheRedirectAgain(t *testing.T) {
	w := newWorld(t)
	prompt := w.prompted("shop")
	prompt.RedirectURI = "https://evil.example.com"
	_, err := w.approve(prompt, w.session())
	wantCode(t, oautherr.InvalidGrant, err)
}

func TestAuthTimeIsWhenTheUserSignedIn(t *testing.T) {
	w := newWorld(t)
	session := w.session()
	w.clock.Advance(30 * time.Minute)
	prompt := w.prompted("shop")
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

// request edits an authorization request.
type request = func(*grants.AuthorizeRequest)

func scope(s string) request  { return func(r *grants.AuthorizeRequest) { r.Scope = s } }
func prompt(p string) request { return func(r *grants.AuthorizeRequest) { r.Prompt = p } }
func maxAge(s string) request { return func(r *grants.AuthorizeRequest) { r.MaxAge = s } }
func hint(s string) request   { return func(r *grants.AuthorizeRequest) { r.LoginHint = s } }

// prompted returns the prompt of a client's request.
func (w *world) prompted(id string, edits ...request) *grants.Prompt {
	w.tb.Helper()
	req := w.authorizeRequest(id)
	for _, edit := range edits {
		edit(&req)
	}
	p, err := w.service.Authorize(w.tb.Context(), req)
	check.OK(w.tb, err)
	return p
}

// The possible next steps of an authorization request.
const (
	signInPage  = "sign-in page"
	consentPage = "consent page"
	aCode       = "code"
)

// next returns the next step of a request, or the code of its error.
func (w *world) next(session *accounts.Session, id string, edits ...request) string {
	w.tb.Helper()
	next, err := w.service.Proceed(w.tb.Context(), w.prompted(id, edits...), session)
	var failed *grants.RedirectError
	switch {
	case errors.As(err, &failed):
		check.Equal(w.tb, "state", failed.State, "xyz")
		return string(failed.Err.Code)
	case err != nil:
		w.tb.Fatal(err)
	case next.SignIn:
		return signInPage
	case next.Code != "":
		return aCode
	}
	return consentPage
}

func (w *world) wantNext(want string, session *accounts.Session, id string, edits ...request) {
	w.tb.Helper()
	check.Equal(w.tb, "next of "+id, w.next(session, id, edits...), want)
}

// allow accepts the consent page of a request.
func (w *world) allow(session accounts.Session, id string, edits ...request) {
	w.tb.Helper()
	_, err := w.approve(w.prompted(id, edits...), session)
	check.OK(w.tb, err)
}

func TestConsentIsRemembered(t *testing.T) {
	w := newWorld(t)
	session := w.session()
	w.wantNext(consentPage, &session, "shop", scope("read write"))
	w.allow(session, "shop", scope("read write"))
	w.wantNext(aCode, &session, "shop", scope("read write"))
	w.wantNext(aCode, &session, "shop", scope("write"))
	w.wantNext(consentPage, &session, "shop", scope("read admin"))
	w.wantNext(consentPage, &session, "shop") // all registered scopes
	w.wantNext(consentPage, &session, "caller", scope("read"))
	bob := session
	bob.Username = "bob"
	w.wantNext(consentPage, &bob, "shop", scope("read"))

	next, err := w.service.Proceed(t.Context(), w.prompted("shop", scope("read admin")), &session)
	check.OK(t, err)
	check.Equal(t, "known", next.Known, []string{"read"})
	w.allow(session, "shop", scope("read admin"))
	w.wantNext(aCode, &session, "shop", scope("write admin"))

	next, err = w.service.Proceed(t.Context(), w.prompted("shop"), &session)
	check.OK(t, err)
	check.Equal(t, "scopes", w.mustToken("shop", w.redemption("shop", next.Code)).Scopes, []string{"read", "write", "admin"})
}

// TestConsentIsAskedEachTimeOfUnprovenClients: another program on the device may use the client_id
// of a public client (RFC 8252 8.6).
//
// Attack (consent): Another program uses the ID of a public client. Without an https redirect
// URI, the user is asked each time.
func TestConsentIsAskedEachTimeOfUnprovenClients(t *testing.T) {
	w := newWorld(t)
	w.changeClient("app", func(c *clientcfg.Client) {
		c.RedirectURIs, c.FirstParty = append(c.RedirectURIs, "https://app.example.com/cb"), true
	})
	session := w.session()
	to := func(uri string) request { return func(r *grants.AuthorizeRequest) { r.RedirectURI = uri } }
	for _, uri := range []string{"http://127.0.0.1:4711/callback", "com.example.app:/callback"} {
		w.wantNext(consentPage, &session, "app", to(uri))
		w.allow(session, "app", to(uri))
		w.wantNext(consentPage, &session, "app", to(uri))
		w.wantNext("consent_required", &session, "app", to(uri), prompt("none"))
	}
	w.wantNext(aCode, &session, "app", to("https://app.example.com/cb"))
}

func TestFirstPartyNeedsNoConsent(t *testing.T) {
	w := newWorld(t)
	w.changeClient("shop", func(c *clientcfg.Client) { c.FirstParty = true })
	session := w.session()
	w.wantNext(signInPage, nil, "shop")
	w.wantNext(aCode, &session, "shop")
	w.wantNext(aCode, &session, "shop", prompt("none"))
	w.wantNext(consentPage, &session, "shop", prompt("consent"))
	allowed, err := w.service.Allowed(t.Context(), "alice")
	check.OK(t, err)
	check.Equal(t, "clients in the user's list", len(allowed), 1)
	check.OK(t, w.service.Withdraw(t.Context(), "alice", "shop"))
	w.wantNext(aCode, &session, "shop")
	for id, want := range map[string]bool{"shop": true, "app": false, "gone": false} {
		check.Equal(t, id+" is of the first party", w.service.FirstParty(id), want)
	}
}

// TestInteraction covers the parameters of OpenID Connect Core 1.0 3.1.2.1, for a user who signed
// in an hour ago and has agreed.
func TestInteraction(t *testing.T) {
	w := newWorld(t)
	session := w.session()
	w.allow(session, "shop")
	w.clock.Advance(time.Hour)
	session.ExpiresAt = w.clock.Now().Add(time.Hour)
	for name, tt := range map[string]struct {
		edits     []request
		signedOut string // next step without a session
		signedIn  string
		client    string // shop if empty; the user has not agreed to caller
	}{
		"nothing":                          {nil, signInPage, aCode, ""},
		"none":                             {[]request{prompt("none")}, "login_required", aCode, ""},
		"none without consent":             {[]request{prompt("none")}, "login_required", "consent_required", "caller"},
		"none, signed in too long ago":     {[]request{prompt("none"), maxAge("3599")}, "login_required", "login_required", ""},
		"none for another user":            {[]request{prompt("none"), hint("bob")}, "login_required", "interaction_required", ""},
		"none for the user":                {[]request{prompt("none"), hint("Alice")}, "login_required", aCode, ""},
		"login":                            {[]request{prompt("login")}, signInPage, signInPage, ""},
		"consent":                          {[]request{prompt("consent")}, signInPage, consentPage, ""},
		"select_account":                   {[]request{prompt("select_account")}, signInPage, consentPage, ""},
		"login and consent":                {[]request{prompt("login consent")}, signInPage, signInPage, ""},
		"max_age":                          {[]request{maxAge("3600")}, signInPage, aCode, ""},
		"max_age that has passed":          {[]request{maxAge("3599")}, signInPage, signInPage, ""},
		"max_age 0":                        {[]request{maxAge("0")}, signInPage, signInPage, ""},
		"max_age of ages":                  {[]request{maxAge("9223372036854775807")}, signInPage, aCode, ""},
		"login_hint":                       {[]request{hint("alice")}, signInPage, aCode, ""},
		"login_hint of another user":       {[]request{hint("bob")}, signInPage, consentPage, ""},
		"login_hint that is no user's":     {[]request{hint("\x00 ?")}, signInPage, consentPage, ""},
		"several spaces are one separator": {[]request{prompt(" consent  login ")}, signInPage, signInPage, ""},
	} {
		t.Run(name, func(t *testing.T) {
			client := tt.client
			if client == "" {
				client = "shop"
			}
			session.Key = name // each has its own limit of codes
			check.Equal(t, "signed out", w.next(nil, client, tt.edits...), tt.signedOut)
			check.Equal(t, "signed in", w.next(&session, client, tt.edits...), tt.signedIn)
		})
	}
	session.CreatedAt = w.clock.Now()
	w.wantNext(signInPage, &session, "shop", maxAge("0")) // even in the same moment
}

func TestInteractionThatIsRefused(t *testing.T) {
	w := newWorld(t)
	for name, edits := range map[string][]request{
		"none and login":       {prompt("none login")},
		"login and none":       {prompt("login none")},
		"unknown prompt":       {prompt("create")},
		"prompt in capitals":   {prompt("None")},
		"negative max_age":     {maxAge("-1")},
		"max_age with a sign":  {maxAge("+1")},
		"max_age in words":     {maxAge("1h")},
		"max_age with a point": {maxAge("1.5")},
		"max_age beyond range": {maxAge("9223372036854775808")},
	} {
		t.Run(name, func(t *testing.T) {
			req := w.authorizeRequest("shop")
			for _, edit := range edits {
				edit(&req)
			}
			_, err := w.service.Authorize(t.Context(), req)
			check.Equal(t, "redirect", check.As[*grants.RedirectError](t, err).RedirectURI, callback)
			wantCode(t, oautherr.InvalidRequest, err)
		})
	}
	_, err := w.service.Authorize(t.Context(), func() grants.AuthorizeRequest {
		req := w.authorizeRequest("shop")
		req.Scope = "openid read"
		return req
	}())
	wantCode(t, oautherr.InvalidScope, err)
}

// TestCodesWithoutPagesAreLimited: codes without pages are limited like codes with pages. This
// stops a client that sends the browser back again and again.
func TestCodesWithoutPagesAreLimited(t *testing.T) {
	w := newWorld(t, tenCodes)
	w.changeClient("shop", func(c *clientcfg.Client) { c.FirstParty = true })
	session, p := w.session(), w.prompted("shop")
	for range 10 {
		_, err := w.service.Proceed(t.Context(), p, &session)
		check.OK(t, err)
	}
	_, err := w.service.Proceed(t.Context(), p, &session)
	w.clock.Advance(check.As[*oautherr.LimitedError](t, err).RetryAfter)
	_, err = w.service.Proceed(t.Context(), p, &session)
	check.OK(t, err, "after the wait")
}
