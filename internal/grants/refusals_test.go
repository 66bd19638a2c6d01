package grants_test

import (
	"strings"
	"testing"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/secret"
)

// TestTokenRefuses has one mistake per case, in an otherwise valid request.
func TestTokenRefuses(t *testing.T) {
	w := newWorld(t)
	basic := func(id, secret string) grants.Credentials {
		return grants.Credentials{Method: grants.AuthBasic, ClientID: id, Secret: secret}
	}
	none := func(id string) grants.Credentials { return grants.Credentials{Method: grants.AuthNone, ClientID: id} }
	creds := func(c grants.Credentials) func(*grants.TokenRequest) {
		return func(r *grants.TokenRequest) { r.Credentials = c }
	}
	code := func() grants.TokenRequest { return w.redemption("shop", w.code("shop")) }
	cc := func() grants.TokenRequest { return grants.TokenRequest{GrantType: "client_credentials"} }
	pw := func() grants.TokenRequest {
		return grants.TokenRequest{GrantType: "password", Username: "bob", Password: password}
	}
	refresh := func() grants.TokenRequest { return refreshing(w.tokens("shop").RefreshToken) }

	for name, tc := range map[string]struct {
		good func() grants.TokenRequest
		edit func(*grants.TokenRequest)
		want oautherr.Code
	}{
		"no grant_type":             {cc, func(r *grants.TokenRequest) { r.GrantType = "" }, oautherr.InvalidRequest},
		"unknown grant_type":        {cc, func(r *grants.TokenRequest) { r.GrantType = "implicit" }, oautherr.UnsupportedGrantType},
		"grant_type in other case":  {cc, func(r *grants.TokenRequest) { r.GrantType = "Client_Credentials" }, oautherr.UnsupportedGrantType},
		"grant not registered":      {cc, func(r *grants.TokenRequest) { *r = pw(); r.Credentials = w.credentials("daemon") }, oautherr.UnauthorizedClient},
		"public, no credentials":    {cc, creds(none("app")), oautherr.UnauthorizedClient},
		"no client":                 {cc, creds(grants.Credentials{Method: grants.AuthNone}), oautherr.InvalidClient},
		"unknown client":            {cc, creds(basic("nobody", "x")), oautherr.InvalidClient},
		"wrong secret":              {cc, creds(basic("shop", "x")), oautherr.InvalidClient},
		"empty secret":              {cc, creds(basic("shop", "")), oautherr.InvalidClient},
		"secret with NUL bytes":     {cc, creds(basic("shop", secretOf("shop")+"\x00\x00")), oautherr.InvalidClient},
		"secret of another":         {cc, creds(basic("shop", secretOf("other"))), oautherr.InvalidClient},
		"confidential, no secret":   {cc, creds(none("shop")), oautherr.InvalidClient},
		"confidential, method none": {cc, creds(grants.Credentials{Method: grants.AuthNone, ClientID: "shop", Secret: secretOf("shop")}), oautherr.InvalidClient},
		"public with a secret":      {code, creds(basic("app", "x")), oautherr.InvalidClient},
		"scope not registered":      {cc, func(r *grants.TokenRequest) { r.Scope = "read root" }, oautherr.InvalidScope},
		"scope malformed":           {cc, func(r *grants.TokenRequest) { r.Scope = "read\x00" }, oautherr.InvalidScope},
		"scope with a quote":        {cc, func(r *grants.TokenRequest) { r.Scope = `re"ad` }, oautherr.InvalidScope},

		"no code":                {code, func(r *grants.TokenRequest) { r.Code = "" }, oautherr.InvalidRequest},
		"unknown code":           {code, func(r *grants.TokenRequest) { r.Code += "x" }, oautherr.InvalidGrant},
		"code of another client": {code, creds(basic("other", secretOf("other"))), oautherr.InvalidGrant},
		"no redirect_uri":        {code, func(r *grants.TokenRequest) { r.RedirectURI = "" }, oautherr.InvalidRequest},
		"other redirect_uri":     {code, func(r *grants.TokenRequest) { r.RedirectURI += "/" }, oautherr.InvalidGrant},
		"no verifier":            {code, func(r *grants.TokenRequest) { r.CodeVerifier = "" }, oautherr.InvalidGrant},
		"wrong verifier":         {code, func(r *grants.TokenRequest) { r.CodeVerifier = strings.Repeat("a", 43) }, oautherr.InvalidGrant},
		"verifier too short":     {code, func(r *grants.TokenRequest) { r.CodeVerifier = "abc" }, oautherr.InvalidGrant},
		"verifier is challenge":  {code, func(r *grants.TokenRequest) { r.CodeVerifier = s256(verifier) }, oautherr.InvalidGrant},

		"no username":               {pw, func(r *grants.TokenRequest) { r.Username = "" }, oautherr.InvalidRequest},
		"no password":               {pw, func(r *grants.TokenRequest) { r.Password = "" }, oautherr.InvalidRequest},
		"wrong password":            {pw, func(r *grants.TokenRequest) { r.Password = "x" }, oautherr.InvalidGrant},
		"unknown user":              {pw, func(r *grants.TokenRequest) { r.Username = "nobody" }, oautherr.InvalidGrant},
		"impossible username":       {pw, func(r *grants.TokenRequest) { r.Username = "bob\x00" }, oautherr.InvalidGrant},
		"password too long":         {pw, func(r *grants.TokenRequest) { r.Password = strings.Repeat("x", 2000) }, oautherr.InvalidGrant},
		"password, bad scope first": {pw, func(r *grants.TokenRequest) { r.Password, r.Scope = "x", "root" }, oautherr.InvalidScope},

		"no refresh_token":      {refresh, func(r *grants.TokenRequest) { r.RefreshToken = "" }, oautherr.InvalidRequest},
		"unknown refresh_token": {refresh, func(r *grants.TokenRequest) { r.RefreshToken += "x" }, oautherr.InvalidGrant},
		"token of another":      {refresh, creds(basic("other", secretOf("other"))), oautherr.InvalidGrant},
	} {
		t.Run(name, func(t *testing.T) {
			req := tc.good()
			req.Credentials = w.credentials("shop")
			good := req
			tc.edit(&req)
			if good == req {
				t.Fatal("the edit changes nothing")
			}
			answer, err := w.service.Token(t.Context(), req)
			wantCode(t, tc.want, err)
			check.Equal(t, "answer", answer, grants.TokenResponse{})

			_, err = w.service.Token(t.Context(), good)
			if err != nil {
				t.Fatalf("the failed attempt burnt the grant: %v", err)
			}
		})
	}
}

func TestExpiry(t *testing.T) {
	w := newWorld(t)
	code := w.redemption("shop", w.code("shop"))
	late := w.redemption("shop", w.code("shop"))
	w.clock.Advance(2*time.Minute - time.Millisecond)
	refresh := refreshing(w.mustToken("shop", code).RefreshToken)
	w.clock.Advance(time.Millisecond)
	_, err := w.token("shop", late)
	wantCode(t, oautherr.InvalidGrant, err)

	w.clock.Advance(30*24*time.Hour - 2*time.Millisecond)
	next := refreshing(w.mustToken("shop", refresh).RefreshToken)
	w.clock.Advance(30*24*time.Hour - time.Millisecond)
	last := refreshing(w.mustToken("shop", next).RefreshToken)
	w.clock.Advance(30 * 24 * time.Hour)
	_, err = w.token("shop", last)
	wantCode(t, oautherr.InvalidGrant, err)
}

// TestRefreshScope: a refresh may narrow the scope but never widen it, and narrowing once does not
// narrow the next refresh (RFC 6749 6).
//
// Attack (rfc9700): 2.3 scope. A refresh cannot widen it, and loses what the client has lost.
// Also grants.TestGrantScope.
func TestRefreshScope(t *testing.T) {
	w := newWorld(t)
	first := w.mustToken("shop", w.redemption("shop", w.code("shop", func(r *grants.AuthorizeRequest) { r.Scope = "read write" })))
	refresh := func(token, scope string) (grants.TokenResponse, error) {
		r := refreshing(token)
		r.Scope = scope
		return w.token("shop", r)
	}
	_, err := refresh(first.RefreshToken, "read write admin")
	wantCode(t, oautherr.InvalidScope, err)
	narrow, err := refresh(first.RefreshToken, "read")
	check.OK(t, err)
	check.Equal(t, "narrow.Scopes", narrow.Scopes, []string{"read"})
	whole, err := refresh(narrow.RefreshToken, "")
	check.OK(t, err)
	check.Equal(t, "whole.Scopes", whole.Scopes, []string{"read", "write"})

	// Authlib repeats its first scope at every refresh.
	for range 3 {
		whole, err = refresh(whole.RefreshToken, "read write")
		check.OK(t, err)
	}
	w.clients["shop"].Scopes = []string{"read"}
	less, err := refresh(whole.RefreshToken, "read write")
	check.OK(t, err)
	check.Equal(t, "scopes without what the client has lost", less.Scopes, []string{"read"})
	w.clients["shop"].Scopes = []string{"admin"}
	_, err = refresh(less.RefreshToken, "")
	wantCode(t, oautherr.InvalidScope, err)
}

// TestNamesakes: tokens of a deleted user or client are worthless, even if another one with the
// same name is created at the same moment.
//
// Attack (revocation): A new user or client with an old name. Earlier tokens stay invalid. Also
// registry.TestChangeOfANamesake.
func TestNamesakes(t *testing.T) {
	for name, replace := range map[string]func(w *world){
		"user deleted": func(w *world) { check.OK(t, w.store.DeleteUser(t.Context(), "alice", nil)) },
		"user replaced": func(w *world) {
			check.OK(t, w.store.DeleteUser(t.Context(), "alice", nil))
			check.OK(t, w.store.CreateUser(t.Context(), accounts.User{Name: "alice", CreatedAt: w.clock.Now(), Stamp: secret.NewStamp()}, clientcfg.Event{}))
		},
		"client replaced": func(w *world) { w.replaceClient("shop") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tokens := w.tokens("shop")
			w.wantActive(true, tokens.AccessToken)
			replace(w)
			w.wantActive(false, tokens.AccessToken)
			w.wantActive(false, tokens.RefreshToken)
			_, err := w.token("shop", refreshing(tokens.RefreshToken))
			wantCode(t, oautherr.InvalidGrant, err)
		})
	}
}

// TestDeletedClient: nothing issued to a client survives its deletion.
func TestDeletedClient(t *testing.T) {
	w := newWorld(t)
	token := w.mustToken("daemon", grants.TokenRequest{GrantType: "client_credentials"}).AccessToken
	w.wantActive(true, token)
	delete(w.clients, "daemon")
	w.wantActive(false, token)
}

func TestNewRefuses(t *testing.T) {
	w := newWorld(t)
	good := w.opts
	_, err := grants.New(good)
	check.OK(t, err)
	for name, edit := range map[string]func(*grants.Options){
		"no issuer":         func(o *grants.Options) { o.Issuer = "" },
		"no clients":        func(o *grants.Options) { o.Clients = nil },
		"no store":          func(o *grants.Options) { o.Store = nil },
		"no signer":         func(o *grants.Options) { o.Signer = nil },
		"negative lifetime": func(o *grants.Options) { o.AccessTokenLifetime = -time.Hour },
		"no deriver":        func(o *grants.Options) { o.Deriver = nil },
		"negative grace":    func(o *grants.Options) { o.RefreshGrace = -time.Second },
		"tiny lifetime":     func(o *grants.Options) { o.CodeLifetime = time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			opts := good
			edit(&opts)
			_, err := grants.New(opts)
			if err == nil {
				t.Fatal("New() accepts it")
			}
		})
	}
}

// TestAudience: a client's own audience replaces the issuer.
//
// Attack (rfc9700): 2.3, 4.10.2 audience. Tokens are for the registered audience, or the issuer
// without one. Also keys.TestSignIsRFC9068, admin.TestWhoMay.
func TestAudience(t *testing.T) {
	w := newWorld(t)
	w.clients["shop"].Audience = []string{"https://api.example.com", "https://api2.example.com"}
	claims, err := w.ring.Verify(w.mustToken("shop", grants.TokenRequest{GrantType: "client_credentials"}).AccessToken, start)
	check.OK(t, err)
	check.Equal(t, "claims.Audience", claims.Audience, w.clients["shop"].Audience)
}

func TestClientCredentialsNeverForPublicClients(t *testing.T) {
	w := newWorld(t)
	w.clients["app"].Grants = clientcfg.Grants() // Validate would refuse this
	_, err := w.token("app", grants.TokenRequest{GrantType: "client_credentials"})
	wantCode(t, oautherr.UnauthorizedClient, err)
}
