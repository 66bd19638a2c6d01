package grants_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"oauth-server/internal/clientcfg"
	. "oauth-server/internal/grants"
)

// TestTokenRefuses has one mistake per case, each made on a request that is
// good without it.
func TestTokenRefuses(t *testing.T) {
	w := newWorld(t)
	basic := func(id, secret string) Credentials {
		return Credentials{Method: AuthBasic, ClientID: id, Secret: secret}
	}
	none := func(id string) Credentials { return Credentials{Method: AuthNone, ClientID: id} }
	creds := func(c Credentials) func(*TokenRequest) { return func(r *TokenRequest) { r.Credentials = c } }
	code := func() TokenRequest { return w.redemption("shop", w.code("shop")) }
	cc := func() TokenRequest { return TokenRequest{GrantType: "client_credentials"} }
	pw := func() TokenRequest { return TokenRequest{GrantType: "password", Username: "bob", Password: password} }
	refresh := func() TokenRequest { return refreshing(w.tokens("shop").RefreshToken) }

	for name, tc := range map[string]struct {
		good func() TokenRequest
		edit func(*TokenRequest)
		want ErrorCode
	}{
		"no grant_type":             {cc, func(r *TokenRequest) { r.GrantType = "" }, InvalidRequest},
		"unknown grant_type":        {cc, func(r *TokenRequest) { r.GrantType = "implicit" }, UnsupportedGrantType},
		"grant_type in other case":  {cc, func(r *TokenRequest) { r.GrantType = "Client_Credentials" }, UnsupportedGrantType},
		"grant not registered":      {cc, func(r *TokenRequest) { *r = pw(); r.Credentials = w.credentials("daemon") }, UnauthorizedClient},
		"public, no credentials":    {cc, creds(none("app")), UnauthorizedClient},
		"no client":                 {cc, creds(Credentials{Method: AuthNone}), InvalidClient},
		"unknown client":            {cc, creds(basic("nobody", "x")), InvalidClient},
		"wrong secret":              {cc, creds(basic("shop", "x")), InvalidClient},
		"empty secret":              {cc, creds(basic("shop", "")), InvalidClient},
		"secret with NUL bytes":     {cc, creds(basic("shop", secretOf("shop")+"\x00\x00")), InvalidClient},
		"secret of another":         {cc, creds(basic("shop", secretOf("other"))), InvalidClient},
		"confidential, no secret":   {cc, creds(none("shop")), InvalidClient},
		"confidential, method none": {cc, creds(Credentials{Method: AuthNone, ClientID: "shop", Secret: secretOf("shop")}), InvalidClient},
		"public with a secret":      {code, creds(basic("app", "x")), InvalidClient},
		"scope not registered":      {cc, func(r *TokenRequest) { r.Scope = "read root" }, InvalidScope},
		"scope malformed":           {cc, func(r *TokenRequest) { r.Scope = "read\x00" }, InvalidScope},
		"scope with a quote":        {cc, func(r *TokenRequest) { r.Scope = `re"ad` }, InvalidScope},

		"no code":                {code, func(r *TokenRequest) { r.Code = "" }, InvalidRequest},
		"unknown code":           {code, func(r *TokenRequest) { r.Code += "x" }, InvalidGrant},
		"code of another client": {code, creds(basic("other", secretOf("other"))), InvalidGrant},
		"no redirect_uri":        {code, func(r *TokenRequest) { r.RedirectURI = "" }, InvalidRequest},
		"other redirect_uri":     {code, func(r *TokenRequest) { r.RedirectURI += "/" }, InvalidGrant},
		"no verifier":            {code, func(r *TokenRequest) { r.CodeVerifier = "" }, InvalidGrant},
		"wrong verifier":         {code, func(r *TokenRequest) { r.CodeVerifier = strings.Repeat("a", 43) }, InvalidGrant},
		"verifier too short":     {code, func(r *TokenRequest) { r.CodeVerifier = "abc" }, InvalidGrant},
		"verifier is challenge":  {code, func(r *TokenRequest) { r.CodeVerifier = s256(verifier) }, InvalidGrant},

		"no username":               {pw, func(r *TokenRequest) { r.Username = "" }, InvalidRequest},
		"no password":               {pw, func(r *TokenRequest) { r.Password = "" }, InvalidRequest},
		"wrong password":            {pw, func(r *TokenRequest) { r.Password = "x" }, InvalidGrant},
		"unknown user":              {pw, func(r *TokenRequest) { r.Username = "nobody" }, InvalidGrant},
		"username nobody can have":  {pw, func(r *TokenRequest) { r.Username = "bob\x00" }, InvalidGrant},
		"password too long":         {pw, func(r *TokenRequest) { r.Password = strings.Repeat("x", 2000) }, InvalidGrant},
		"password, bad scope first": {pw, func(r *TokenRequest) { r.Password, r.Scope = "x", "root" }, InvalidScope},

		"no refresh_token":      {refresh, func(r *TokenRequest) { r.RefreshToken = "" }, InvalidRequest},
		"unknown refresh_token": {refresh, func(r *TokenRequest) { r.RefreshToken += "x" }, InvalidGrant},
		"token of another":      {refresh, creds(basic("other", secretOf("other"))), InvalidGrant},
	} {
		t.Run(name, func(t *testing.T) {
			req := tc.good()
			req.Credentials = w.credentials("shop")
			good := req
			tc.edit(&req)
			require.NotEqual(t, good, req)
			answer, err := w.service.Token(t.Context(), req)
			requireCode(t, tc.want, err)
			require.Zero(t, answer)

			_, err = w.service.Token(t.Context(), good)
			require.NoError(t, err, "a failed attempt burns nothing")
		})
	}
}

func TestExpiry(t *testing.T) {
	w := newWorld(t)
	code := w.redemption("shop", w.code("shop"))
	late := w.redemption("shop", w.code("shop"))
	w.clock.advance(2*time.Minute - time.Millisecond)
	refresh := refreshing(w.mustToken("shop", code).RefreshToken)
	w.clock.advance(time.Millisecond)
	_, err := w.token("shop", late)
	requireCode(t, InvalidGrant, err)

	w.clock.advance(30*24*time.Hour - 2*time.Millisecond)
	next := refreshing(w.mustToken("shop", refresh).RefreshToken)
	w.clock.advance(30*24*time.Hour - time.Millisecond)
	last := refreshing(w.mustToken("shop", next).RefreshToken)
	w.clock.advance(30 * 24 * time.Hour)
	_, err = w.token("shop", last)
	requireCode(t, InvalidGrant, err)
}

// TestRefreshScope: a refresh narrows, never widens, and narrowing once does
// not narrow the next one (RFC 6749 6).
func TestRefreshScope(t *testing.T) {
	w := newWorld(t)
	first := w.mustToken("shop", w.redemption("shop", w.code("shop", func(r *AuthorizeRequest) { r.Scope = "read write" })))
	refresh := func(token, scope string) (TokenResponse, error) {
		r := refreshing(token)
		r.Scope = scope
		return w.token("shop", r)
	}
	_, err := refresh(first.RefreshToken, "read write admin")
	requireCode(t, InvalidScope, err)
	narrow, err := refresh(first.RefreshToken, "read")
	require.NoError(t, err)
	require.Equal(t, []string{"read"}, narrow.Scopes)
	whole, err := refresh(narrow.RefreshToken, "")
	require.NoError(t, err)
	require.Equal(t, []string{"read", "write"}, whole.Scopes)

	// Authlib repeats what it first asked for, at every refresh.
	for range 3 {
		whole, err = refresh(whole.RefreshToken, "read write")
		require.NoError(t, err)
	}
	w.clients["shop"].Scopes = []string{"read"}
	less, err := refresh(whole.RefreshToken, "read write")
	require.NoError(t, err)
	require.Equal(t, []string{"read"}, less.Scopes, "what the client has lost is left out")
	w.clients["shop"].Scopes = []string{"admin"}
	_, err = refresh(less.RefreshToken, "")
	requireCode(t, InvalidScope, err)
}

// TestNamesakes: what was issued to a user or a client who was deleted is
// worth nothing, even when another of that name follows.
func TestNamesakes(t *testing.T) {
	for name, replace := range map[string]func(w *world){
		"user deleted": func(w *world) { require.NoError(t, w.store.DeleteUser(t.Context(), "alice")) },
		"user replaced": func(w *world) {
			require.NoError(t, w.store.DeleteUser(t.Context(), "alice"))
			require.NoError(t, w.store.CreateUser(t.Context(), User{Name: "alice", CreatedAt: w.clock.Now()}))
		},
		"client replaced": func(w *world) { w.clients["shop"].CreatedAt = w.clock.Now() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tokens := w.tokens("shop")
			w.clock.advance(10 * time.Minute)
			require.True(t, w.active(tokens.AccessToken))
			replace(w)
			require.False(t, w.active(tokens.AccessToken))
			require.False(t, w.active(tokens.RefreshToken))
			_, err := w.token("shop", refreshing(tokens.RefreshToken))
			requireCode(t, InvalidGrant, err)
		})
	}
}

// TestDeletedClient: nothing of a client survives it.
func TestDeletedClient(t *testing.T) {
	w := newWorld(t)
	token := w.mustToken("daemon", TokenRequest{GrantType: "client_credentials"}).AccessToken
	require.True(t, w.active(token))
	delete(w.clients, "daemon")
	require.False(t, w.active(token))
}

func TestNewRefuses(t *testing.T) {
	w := newWorld(t)
	good := Options{Issuer: issuer, Clients: w, Store: w.store, Signer: w.ring}
	_, err := New(good)
	require.NoError(t, err)
	for name, edit := range map[string]func(*Options){
		"no issuer":         func(o *Options) { o.Issuer = "" },
		"no clients":        func(o *Options) { o.Clients = nil },
		"no store":          func(o *Options) { o.Store = nil },
		"no signer":         func(o *Options) { o.Signer = nil },
		"negative lifetime": func(o *Options) { o.AccessTokenLifetime = -time.Hour },
		"tiny lifetime":     func(o *Options) { o.CodeLifetime = time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			opts := good
			edit(&opts)
			_, err := New(opts)
			require.Error(t, err)
		})
	}
}

// TestAudience: a client's own audience takes the place of the issuer.
func TestAudience(t *testing.T) {
	w := newWorld(t)
	w.clients["shop"].Audience = []string{"https://api.example.com", "https://api2.example.com"}
	claims, err := w.ring.Verify(w.mustToken("shop", TokenRequest{GrantType: "client_credentials"}).AccessToken, start)
	require.NoError(t, err)
	require.Equal(t, w.clients["shop"].Audience, claims.Audience)
}

func TestClientCredentialsNeverForPublicClients(t *testing.T) {
	w := newWorld(t)
	w.clients["app"].Grants = clientcfg.Grants() // which Validate would not let pass
	_, err := w.token("app", TokenRequest{GrantType: "client_credentials"})
	requireCode(t, UnauthorizedClient, err)
}
