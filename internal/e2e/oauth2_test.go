package e2e

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"oauth-server/internal/tokenclient"
)

// loopbackURI is a registered loopback address with a port of the moment, as
// native apps use it (RFC 8252 section 7.3). Nobody listens there: the browser
// of these tests stops before it.
const loopbackURI = "http://127.0.0.1:49152/callback"

// with returns a context with an HTTP client that the test cleans up.
func with(tb testing.TB) context.Context {
	tb.Helper()
	return context.WithValue(tb.Context(), oauth2.HTTPClient, newHTTPClient(tb))
}

// config is what golang.org/x/oauth2 is told about a client.
func (s *server) config(clientID string) *oauth2.Config {
	c := &oauth2.Config{
		ClientID: clientID, ClientSecret: secrets[clientID], Scopes: []string{"read"}, RedirectURL: loopbackURI,
		Endpoint: oauth2.Endpoint{AuthURL: s.Issuer + "/authorize", TokenURL: s.Issuer + "/token", AuthStyle: oauth2.AuthStyleInHeader},
	}
	if c.ClientSecret == "" {
		c.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return c
}

func (s *server) credentials(clientID string) *clientcredentials.Config {
	return &clientcredentials.Config{
		ClientID: clientID, ClientSecret: secrets[clientID], TokenURL: s.Issuer + "/token",
		Scopes: []string{"read"}, AuthStyle: oauth2.AuthStyleInHeader,
	}
}

// code signs in with a browser and returns a code with what redeems it.
func (s *server) code(b *browser, c *oauth2.Config) (code, verifier string) {
	s.tb.Helper()
	verifier = oauth2.GenerateVerifier()
	back := b.signInAndAgree(c.AuthCodeURL("the state", oauth2.S256ChallengeOption(verifier)))
	require.Empty(s.tb, back.Get("error"), back)
	require.Equal(s.tb, "the state", back.Get("state"))
	require.Equal(s.tb, s.Issuer, back.Get("iss"), "RFC 9207")
	require.NotEmpty(s.tb, back.Get("code"))
	return back.Get("code"), verifier
}

// refresh spends a refresh token.
func refresh(ctx context.Context, c *oauth2.Config, token string) (*oauth2.Token, error) {
	return c.TokenSource(ctx, &oauth2.Token{RefreshToken: token}).Token()
}

// requireRefused checks that x/oauth2 understood the server's refusal.
func requireRefused(tb testing.TB, err error, status int, code string) {
	tb.Helper()
	var refused *oauth2.RetrieveError
	require.ErrorAs(tb, err, &refused)
	require.Equal(tb, status, refused.Response.StatusCode, string(refused.Body))
	require.Equal(tb, code, refused.ErrorCode)
	require.NotEmpty(tb, refused.ErrorDescription)
}

func TestClientCredentials(t *testing.T) {
	s := start(t, unlimited)
	for name, style := range map[string]oauth2.AuthStyle{
		"basic": oauth2.AuthStyleInHeader, "post": oauth2.AuthStyleInParams, "found out by itself": oauth2.AuthStyleAutoDetect,
	} {
		t.Run(name, func(t *testing.T) {
			c := s.credentials("shop")
			c.AuthStyle = style
			token, err := c.Token(with(t))
			require.NoError(t, err)
			require.Equal(t, "Bearer", token.Type())
			require.Empty(t, token.RefreshToken, "RFC 6749 4.4.3")
			require.Equal(t, "read", token.Extra("scope"))
			claims := verify(t, s, token.AccessToken)
			require.Equal(t, "shop", claims.ClientID)
			require.Equal(t, "shop", claims.Subject, "RFC 9068 2.2: the client itself")
			require.Equal(t, "read", claims.Scope)
		})
	}
}

func TestCodeWithPKCE(t *testing.T) {
	s := start(t, unlimited)
	for _, id := range []string{"web", "native"} {
		t.Run(id, func(t *testing.T) {
			c := s.config(id)
			code, verifier := s.code(newBrowser(t), c)
			token, err := c.Exchange(with(t), code, oauth2.VerifierOption(verifier))
			require.NoError(t, err)
			require.NotEmpty(t, token.RefreshToken)
			claims := verify(t, s, token.AccessToken)
			require.Equal(t, id, claims.ClientID)
			require.Equal(t, user, claims.Subject)
			require.WithinDuration(t, time.Now(), claims.expiry(), 2*time.Hour)
		})
	}
}

// A wrong attempt must not burn the code: whoever has the verifier redeems it.
func TestCodeSurvivesWrongAttempts(t *testing.T) {
	s := start(t, unlimited)
	c := s.config("web")
	code, verifier := s.code(newBrowser(t), c)
	ctx := with(t)

	_, err := c.Exchange(ctx, code, oauth2.VerifierOption(oauth2.GenerateVerifier()))
	requireRefused(t, err, 400, "invalid_grant")
	_, err = c.Exchange(ctx, code)
	requireRefused(t, err, 400, "invalid_grant")
	other := s.config("other")
	other.RedirectURL = loopbackURI
	_, err = other.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	requireRefused(t, err, 400, "invalid_grant")
	elsewhere := s.config("web")
	elsewhere.RedirectURL = "https://web.example/cb"
	_, err = elsewhere.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	requireRefused(t, err, 400, "invalid_grant")

	_, err = c.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	require.NoError(t, err)
}

func TestCodeReplayRevokesWhatItBought(t *testing.T) {
	s := start(t, unlimited)
	c := s.config("web")
	code, verifier := s.code(newBrowser(t), c)
	ctx := with(t)
	token, err := c.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	require.NoError(t, err)
	_, err = c.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	requireRefused(t, err, 400, "invalid_grant")
	_, err = refresh(ctx, c, token.RefreshToken)
	requireRefused(t, err, 400, "invalid_grant")
}

func TestRefreshRotatesAndReuseRevokesTheFamily(t *testing.T) {
	s := start(t, unlimited)
	c := s.config("web")
	code, verifier := s.code(newBrowser(t), c)
	ctx := with(t)
	first, err := c.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	require.NoError(t, err)
	second, err := refresh(ctx, c, first.RefreshToken)
	require.NoError(t, err)
	require.NotEqual(t, first.RefreshToken, second.RefreshToken)
	require.NotEqual(t, first.AccessToken, second.AccessToken)
	third, err := refresh(ctx, c, second.RefreshToken)
	require.NoError(t, err)
	require.Equal(t, user, verify(t, s, third.AccessToken).Subject)

	_, err = refresh(ctx, c, first.RefreshToken)
	requireRefused(t, err, 400, "invalid_grant")
	_, err = refresh(ctx, c, third.RefreshToken)
	requireRefused(t, err, 400, "invalid_grant")
	require.Equal(t, map[string]any{"active": false}, s.introspect("shop", third.AccessToken), "revoked with its family")
}

func TestRefreshTokenBelongsToItsClient(t *testing.T) {
	s := start(t, unlimited)
	c := s.config("web")
	code, verifier := s.code(newBrowser(t), c)
	ctx := with(t)
	token, err := c.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	require.NoError(t, err)

	_, err = refresh(ctx, s.config("other"), token.RefreshToken)
	requireRefused(t, err, 400, "invalid_grant")
	wrong := s.config("web")
	wrong.ClientSecret = "wrong"
	_, err = refresh(ctx, wrong, token.RefreshToken)
	requireRefused(t, err, 401, "invalid_client")

	_, err = refresh(ctx, c, token.RefreshToken)
	require.NoError(t, err, "the attempts of others spent nothing")
}

func TestPassword(t *testing.T) {
	s := start(t, unlimited)
	ctx := with(t)
	c := s.config("legacy")
	token, err := c.PasswordCredentialsToken(ctx, user, password)
	require.NoError(t, err)
	require.Equal(t, user, verify(t, s, token.AccessToken).Subject)
	_, err = refresh(ctx, c, token.RefreshToken)
	require.NoError(t, err)

	_, err = c.PasswordCredentialsToken(ctx, user, "wrong")
	requireRefused(t, err, 400, "invalid_grant")
	_, err = c.PasswordCredentialsToken(ctx, "nobody", password)
	requireRefused(t, err, 400, "invalid_grant")
	_, err = s.config("web").PasswordCredentialsToken(ctx, user, password)
	requireRefused(t, err, 400, "unauthorized_client")
}

func TestSignInGoesWrongThenRight(t *testing.T) {
	s := start(t, unlimited)
	c := s.config("web")
	b := newBrowser(t)
	verifier := oauth2.GenerateVerifier()
	b.open(c.AuthCodeURL("s", oauth2.S256ChallengeOption(verifier)))
	b.submit("/sign-in", "username", user, "password", "wrong")
	require.Equal(t, http.StatusForbidden, b.page.status)
	require.Contains(t, b.page.text, `value="`+user+`"`, "the name is kept")
	require.NotContains(t, b.page.text, "wrong", "the password is not")
	b.submit("/sign-in", "username", user, "password", password)
	b.submit("/consent", "decision", "deny")
	require.NotNil(t, b.page.left)
	require.Equal(t, url.Values{"error": {"access_denied"}, "state": {"s"}, "iss": {s.Issuer}},
		without(b.page.left.Query(), "error_description"))
}

func without(v url.Values, name string) url.Values {
	v.Del(name)
	return v
}

// A second authorization with the same browser needs no password.
func TestSessionIsKept(t *testing.T) {
	s := start(t, unlimited)
	b := newBrowser(t)
	c := s.config("web")
	s.code(b, c)
	b.open(c.AuthCodeURL("s", oauth2.S256ChallengeOption(oauth2.GenerateVerifier())))
	require.False(t, b.has("/sign-in"))
	require.True(t, b.has("/consent"))
}

// The command that people try the server with, against the server itself.
func TestTokenCommandOfOurs(t *testing.T) {
	s := start(t, unlimited)
	b := newBrowser(t)
	client := &tokenclient.Client{
		HTTP: newHTTPClient(t),
		Now:  time.Now,
		Show: func(ctx context.Context, address string) error {
			b.signInAndAgree(address)
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.page.left.String(), http.NoBody)
			if err != nil {
				return err
			}
			res, err := newHTTPClient(t).Do(req)
			if err != nil {
				return err
			}
			require.Equal(t, http.StatusOK, res.StatusCode)
			return res.Body.Close()
		},
	}
	request := tokenclient.Request{
		Issuer: s.Issuer, Grant: "authorization_code", ClientID: "native", Scopes: []string{"read"},
		RedirectPath: "/callback", CacheDir: t.TempDir(),
	}
	steps := []struct {
		grant string
		want  tokenclient.Origin
	}{
		{"authorization_code", tokenclient.Issued},
		{"authorization_code", tokenclient.Reused},
		{"refresh_token", tokenclient.Refreshed},
		{"authorization_code", tokenclient.Reused},
		{"refresh_token", tokenclient.Refreshed},
	}
	for _, step := range steps {
		request.Grant = grantOf(step.grant)
		got, err := client.Token(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, step.want, got.Origin)
		require.True(t, got.Claims.Verified, got.Claims.Problem)
		require.True(t, strings.Contains(string(got.Claims.Payload), `"`+user+`"`))
	}
}
