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
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
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
		"client_credentials": {"shop", clientCredentials, "shop", []string{"read", "write", "admin"}, false},
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
	cc := func() grants.TokenRequest { return clientCredentials }
	pw := func() grants.TokenRequest {
		return byPassword("bob", password)
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
	w.wantRefused(oautherr.InvalidGrant, "shop", late)

	w.clock.Advance(30*24*time.Hour - 2*time.Millisecond)
	next := refreshing(w.mustToken("shop", refresh).RefreshToken)
	w.clock.Advance(30*24*time.Hour - time.Millisecond)
	last := refreshing(w.mustToken("shop", next).RefreshToken)
	w.clock.Advance(30 * 24 * time.Hour)
	w.wantRefused(oautherr.InvalidGrant, "shop", last)
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
			tokens, code := w.tokens("shop"), w.redemption("shop", w.code("shop"))
			w.wantActive(true, tokens.AccessToken)
			replace(w)
			w.wantRefused(oautherr.InvalidGrant, "shop", code)
			w.wantActive(false, tokens.AccessToken)
			w.wantActive(false, tokens.RefreshToken)
			w.wantRefused(oautherr.InvalidGrant, "shop", refreshing(tokens.RefreshToken))
		})
	}
}

func TestNewRefuses(t *testing.T) {
	w := newWorld(t)
	good := w.opts
	_, err := grants.New(good)
	check.OK(t, err)
	for name, edit := range map[string]func(*grants.Options){
		"negative limit":   func(o *grants.Options) { o.SignIn.Failures.PerName = ratelimit.NewLimit("x", -1, time.Minute) },
		"limit of no time": func(o *grants.Options) { o.ClientFailures.PerAddress = ratelimit.NewLimit("x", 1, 0) },
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
	claims, err := w.ring.Verify(w.mustToken("shop", clientCredentials).AccessToken, start)
	check.OK(t, err)
	check.Equal(t, "claims.Audience", claims.Audience, w.clients["shop"].Audience)
}

func TestClientCredentialsNeverForPublicClients(t *testing.T) {
	w := newWorld(t)
	w.clients["app"].Grants = clientcfg.Grants() // Validate would refuse this
	w.wantRefused(oautherr.UnauthorizedClient, "app", clientCredentials)
}

// TestTwoSecrets: during a rotation both secrets are accepted, and each use is reported with the
// secret used. Afterwards only the new one is accepted.
//
// Attack (revocation): An old client secret. At most two secrets are valid. The former one ends
// on time. Also e2e.TestTwoSecretsDuringARotation.
func TestTwoSecrets(t *testing.T) {
	type use struct {
		clientID string
		digest   secret.Digest
		at       time.Time
	}
	var uses []use
	w := newWorld(t, func(o *grants.Options) {
		o.SecretUsed = func(id string, d secret.Digest, at time.Time) { uses = append(uses, use{id, d, at}) }
	})
	w.clients["shop"].Former = clientcfg.FormerSecret{Digest: secret.DigestOf("former"), Until: start.Add(time.Hour)}
	ask := func(presented string) error {
		_, err := w.service.Token(t.Context(), grants.TokenRequest{
			GrantType: "client_credentials", Credentials: grants.Credentials{Method: grants.AuthPost, ClientID: "shop", Secret: presented},
		})
		return err
	}
	check.OK(t, ask(secretOf("shop")))
	w.clock.Advance(time.Hour - 1)
	check.OK(t, ask("former"))
	w.clock.Advance(1)
	for _, wrong := range []string{"former", "", "x", string(make([]byte, 32))} {
		wantCode(t, oautherr.InvalidClient, ask(wrong))
	}
	check.OK(t, ask(secretOf("shop")))
	w.clients["shop"].Former = clientcfg.FormerSecret{Until: start.Add(24 * time.Hour)} // without a secret
	wantCode(t, oautherr.InvalidClient, ask(""))
	w.tokens("app") // a public client has no secret
	check.Equal(t, "uses", uses, []use{
		{"shop", secret.DigestOf(secretOf("shop")), start},
		{"shop", secret.DigestOf("former"), start.Add(time.Hour - 1)},
		{"shop", secret.DigestOf(secretOf("shop")), start.Add(time.Hour)},
	})
}

// TestRawSecret: a client that does not form-encode its secret in HTTP Basic is accepted, with
// either of its secrets. A client that sends neither spelling of a secret fails once.
func TestRawSecret(t *testing.T) {
	var uses []secret.Digest
	w := newWorld(t, func(o *grants.Options) {
		o.SecretUsed = func(_ string, d secret.Digest, _ time.Time) { uses = append(uses, d) }
	})
	current, former, decoded := secret.DigestOf("a+b%41"), secret.DigestOf("c+d"), secret.DigestOf("e f")
	w.clients["shop"].SecretDigest = current
	w.clients["shop"].Former = clientcfg.FormerSecret{Digest: former, Until: start.Add(time.Hour)}
	ask := func(text, raw string) error {
		_, err := w.service.Token(t.Context(), grants.TokenRequest{
			GrantType: "client_credentials", Credentials: grants.Credentials{Method: grants.AuthBasic, ClientID: "shop", Secret: text, RawSecret: raw},
		})
		return err
	}
	check.OK(t, ask("a bA", "a+b%41"))
	check.OK(t, ask("a+b%41", "a%2Bb%2541"))
	check.OK(t, ask("c d", "c+d"))
	for _, wrong := range []string{"", "a+b%42", "a bA"} {
		wantCode(t, oautherr.InvalidClient, ask("a bA", wrong))
	}
	w.clients["shop"].SecretDigest = decoded
	check.OK(t, ask("e f", "e+f"))
	w.clock.Advance(time.Hour)
	wantCode(t, oautherr.InvalidClient, ask("c d", "c+d"))
	check.Equal(t, "uses", uses, []secret.Digest{current, current, former, decoded})
}

const day = 24 * time.Hour

// TestFamiliesEnd: a sign-in ends at its maximum age, however often it is refreshed.
//
// Attack (tokens): A sign-in that never ends. Refreshing does not extend the maximum age. Also
// e2e.TestRefreshEndsByAge.
func TestFamiliesEnd(t *testing.T) {
	w := newWorld(t, func(o *grants.Options) { o.RefreshMaxAge = 40 * day })
	token := w.tokens("shop").RefreshToken
	for range 3 {
		w.clock.Advance(13 * day)
		token = w.refresh(token).RefreshToken
	}
	w.wantActive(true, token) // 39 days
	shown, err := w.service.Introspect(t.Context(), w.query("shop", token))
	check.OK(t, err)
	check.Equal(t, "exp", shown.ExpiresAt, start.Add(40*day))
	w.clock.Advance(day - time.Nanosecond)
	token = w.refresh(token).RefreshToken
	w.clock.Advance(time.Nanosecond)
	w.wantActive(false, token)
	w.wantRefused(oautherr.InvalidGrant, "shop", refreshing(token))
}

// TestMaxAgeOfOlderTokens: tokens issued without a maximum age, or under a longer one, end too.
func TestMaxAgeOfOlderTokens(t *testing.T) {
	w := newWorld(t)
	token := w.tokens("shop").RefreshToken
	w.reopen(func(o *grants.Options) { o.RefreshMaxAge = day })
	w.clock.Advance(day)
	w.wantActive(false, token)
	w.wantRefused(oautherr.InvalidGrant, "shop", refreshing(token))
}

// TestSignInTooOldForARefreshToken: the code is redeemed without a refresh token.
func TestSignInTooOldForARefreshToken(t *testing.T) {
	w := newWorld(t, func(o *grants.Options) { o.RefreshMaxAge = time.Second })
	code := w.redemption("shop", w.code("shop"))
	w.clock.Advance(time.Second)
	answer := w.mustToken("shop", code)
	check.Equal(t, "refresh token", answer.RefreshToken, "")
	w.wantActive(true, answer.AccessToken)
}

// TestCodeScopesOfTheClient: scopes that the client has lost since the consent are left out.
func TestCodeScopesOfTheClient(t *testing.T) {
	w := newWorld(t)
	some, none := w.redemption("shop", w.code("shop")), w.redemption("shop", w.code("shop"))
	w.clients["shop"].Scopes = []string{"write"}
	check.Equal(t, "scopes", w.mustToken("shop", some).Scopes, []string{"write"})
	w.clients["shop"].Scopes = []string{"other"}
	w.wantRefused(oautherr.InvalidScope, "shop", none)
}
