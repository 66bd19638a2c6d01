package e2e

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/tokenclient"
	"oauth-server/internal/clientcfg"
)

// loopbackURI is a registered loopback address with a port chosen at run time, as native apps use it
// (RFC 8252 section 7.3). Nothing listens there: the browser of these tests stops before it.
const loopbackURI = "http://127.0.0.1:49152/callback"

// with returns a context with an HTTP client that the test cleans up.
func with(tb testing.TB) context.Context {
	tb.Helper()
	return context.WithValue(tb.Context(), oauth2.HTTPClient, newHTTPClient(tb))
}

// config is a client of the fixture for golang.org/x/oauth2.
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
	code = back.Get("code")
	// RFC 9207 asks for iss.
	check.Equal(s.tb, "answer", back, url.Values{"code": {code}, "state": {"the state"}, "iss": {s.Issuer}})
	if code == "" {
		s.tb.Fatal("the code is empty")
	}
	return code, verifier
}

// signIn signs in with a browser and returns the token for it.
func (s *server) signIn(ctx context.Context, c *oauth2.Config) *oauth2.Token {
	s.tb.Helper()
	code, verifier := s.code(newBrowser(s.tb), c)
	token, err := c.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	check.OK(s.tb, err)
	return token
}

// refresh sends a refresh token and returns the token for it.
func refresh(ctx context.Context, c *oauth2.Config, token string) (*oauth2.Token, error) {
	return c.TokenSource(ctx, &oauth2.Token{RefreshToken: token}).Token()
}

// requireRefused checks that x/oauth2 understood the server's refusal.
func requireRefused(tb testing.TB, err error, status int, code string) {
	tb.Helper()
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) {
		tb.Fatalf("got %v, want a refusal with %s", err, code)
	}
	if refused.Response.StatusCode != status || refused.ErrorCode != code || refused.ErrorDescription == "" {
		tb.Fatalf("status %d: %s, want status %d and %s with a description", refused.Response.StatusCode, refused.Body, status, code)
	}
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
			check.OK(t, err)
			check.Equal(t, "token_type", token.Type(), "Bearer")
			check.Equal(t, "refresh_token", token.RefreshToken, "") // RFC 6749 section 4.4.3
			check.Equal(t, "scope", token.Extra("scope"), "read")
			claims := verify(t, s, token.AccessToken)
			check.Equal(t, "client_id", claims.ClientID, "shop")
			check.Equal(t, "sub", claims.Subject, "shop") // the client itself: RFC 9068 section 2.2
			check.Equal(t, "scope of the claims", claims.Scope, "read")
		})
	}
}

func TestCodeWithPKCE(t *testing.T) {
	s := start(t, unlimited)
	for _, id := range []string{"web", "native"} {
		t.Run(id, func(t *testing.T) {
			c := s.config(id)
			token := s.signIn(with(t), c)
			if token.RefreshToken == "" {
				t.Fatal("no refresh token")
			}
			claims := verify(t, s, token.AccessToken)
			check.Equal(t, "client_id", claims.ClientID, id)
			check.Equal(t, "sub", claims.Subject, user)
			if left := time.Until(claims.expiry()); left.Abs() > 2*time.Hour {
				t.Fatalf("the token expires in %v", left)
			}
		})
	}
}

func TestCodeReplayRevokesWhatItBought(t *testing.T) {
	s := start(t, unlimited)
	c := s.config("web")
	code, verifier := s.code(newBrowser(t), c)
	ctx := with(t)
	token, err := c.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	check.OK(t, err)
	_, err = c.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	requireRefused(t, err, 400, "invalid_grant")
	_, err = refresh(ctx, c, token.RefreshToken)
	requireRefused(t, err, 400, "invalid_grant")
}

// Attack (rfc9700): 2.2.2 refresh token of another client. It is refused, and stays valid for
// its client. Also grants.TestPitfall01_RefreshAuthenticatesTheClient.
func TestRefreshTokenBelongsToItsClient(t *testing.T) {
	s := start(t, unlimited)
	c := s.config("web")
	ctx := with(t)
	token := s.signIn(ctx, c)

	_, err := refresh(ctx, s.config("other"), token.RefreshToken)
	requireRefused(t, err, 400, "invalid_grant")
	wrong := s.config("web")
	wrong.ClientSecret = "wrong"
	_, err = refresh(ctx, wrong, token.RefreshToken)
	requireRefused(t, err, 401, "invalid_client")

	_, err = refresh(ctx, c, token.RefreshToken)
	check.OK(t, err, "an attempt of others spent the token")
}

func TestPassword(t *testing.T) {
	s := start(t, unlimited)
	ctx := with(t)
	c := s.config("legacy")
	token, err := c.PasswordCredentialsToken(ctx, user, password)
	check.OK(t, err)
	check.Equal(t, "sub", verify(t, s, token.AccessToken).Subject, user)
	_, err = refresh(ctx, c, token.RefreshToken)
	check.OK(t, err)

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
	check.Equal(t, "status", b.page.status, http.StatusForbidden)
	if !strings.Contains(b.page.text, `value="`+user+`"`) || strings.Contains(b.page.text, "wrong") {
		t.Fatalf("the page does not keep the name, or keeps the password:\n%s", b.page.text)
	}
	b.submit("/sign-in", "username", user, "password", password)
	b.submit("/consent", "decision", "deny")
	check.Equal(t, "answer", without(b.sentTo().Query(), "error_description"),
		url.Values{"error": {"access_denied"}, "state": {"s"}, "iss": {s.Issuer}})
}

func without(v url.Values, name string) url.Values {
	v.Del(name)
	return v
}

// A second authorization with the same browser needs no password, and no page where only the client can
// receive the answer.
func TestSessionIsKept(t *testing.T) {
	s := start(t, unlimited)
	b := newBrowser(t)
	c := s.config("native")
	s.code(b, c)
	b.open(c.AuthCodeURL("s", oauth2.S256ChallengeOption(oauth2.GenerateVerifier())))
	if b.has("/sign-in") || !b.has("/consent") {
		t.Fatalf("not the page for consent:\n%s", b.page.text)
	}
	c = s.config("web")
	s.code(b, c)
	b.open(c.AuthCodeURL("s", oauth2.S256ChallengeOption(oauth2.GenerateVerifier())))
	check.Equal(t, "a code without a page", b.sentTo().Query().Has("code"), true)
}

// The client behind the token command, against the server itself.
func TestTokenClient(t *testing.T) {
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
			check.Equal(t, "status of the loopback listener", res.StatusCode, http.StatusOK)
			return res.Body.Close()
		},
	}
	request := tokenclient.Request{
		Issuer: s.Issuer, ClientID: "native", Scopes: []string{"read"},
		RedirectPath: "/callback", CacheDir: t.TempDir(),
	}
	steps := []struct {
		grant clientcfg.Grant
		want  tokenclient.Origin
	}{
		{clientcfg.AuthorizationCode, tokenclient.Issued},
		{clientcfg.AuthorizationCode, tokenclient.Reused},
		{clientcfg.RefreshToken, tokenclient.Refreshed},
		{clientcfg.AuthorizationCode, tokenclient.Reused},
		{clientcfg.RefreshToken, tokenclient.Refreshed},
	}
	for _, step := range steps {
		request.Grant = step.grant
		got, err := client.Token(t.Context(), request)
		check.OK(t, err)
		check.Equal(t, "origin", got.Origin, step.want)
		if !got.Claims.Verified || !strings.Contains(string(got.Claims.Payload), `"`+user+`"`) {
			t.Fatalf("not verified (%s), or not about %s: %s", got.Claims.Problem, user, got.Claims.Payload)
		}
	}
}
