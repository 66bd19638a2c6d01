package tokenclient_test

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/tokenclient"
	"oauth-server/internal/clientcfg"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newClient is a client by the fake server's clock, whose person follows every
// address in a browser without cookies.
func newClient(tb testing.TB, f *fakeServer) *tokenclient.Client {
	tb.Helper()
	hc := tokenclient.NewHTTPClient()
	hc.Transport = &http.Transport{DisableKeepAlives: true}
	return &tokenclient.Client{
		HTTP: hc,
		Now:  f.clock,
		Show: func(ctx context.Context, address string) error {
			_, err := browse(ctx, address)
			return err
		},
		Notify: func(message string) { tb.Log("notified:", message) },
	}
}

// browse follows redirects as a browser does, and returns the last status.
func browse(ctx context.Context, address string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return 0, err
	}
	browser := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := browser.Do(req)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

func request(f *fakeServer, grant clientcfg.Grant) tokenclient.Request {
	r := tokenclient.Request{
		Issuer: f.URL, Grant: grant, ClientID: "shop", ClientSecret: "s3cret",
		Scopes: []string{"read"}, RedirectPath: "/callback",
	}
	if grant == clientcfg.Password {
		r.Username, r.Password = "ada", "right"
	}
	return r
}

// token gets a token, which must come from where it is wanted.
func token(tb testing.TB, c *tokenclient.Client, r tokenclient.Request, want tokenclient.Origin) *tokenclient.Result {
	tb.Helper()
	got, err := c.Token(tb.Context(), r)
	check.OK(tb, err, "Token()")
	check.Equal(tb, "origin", got.Origin, want)
	return got
}

// failsWith asks for a token and wants an error with that text.
func failsWith(tb testing.TB, c *tokenclient.Client, r tokenclient.Request, text string) {
	tb.Helper()
	_, err := c.Token(tb.Context(), r)
	check.ErrorSays(tb, err, text)
}

func TestTokenByEachGrant(t *testing.T) {
	for _, grant := range clientcfg.Grants() {
		t.Run(string(grant), func(t *testing.T) {
			f := newFakeServer(t)
			r := request(f, grant)
			if grant == clientcfg.RefreshToken {
				f.refresh = "given"
				r.RefreshToken = "given"
			}
			want := tokenclient.Issued
			if grant == clientcfg.RefreshToken {
				want = tokenclient.Refreshed
			}
			got := token(t, newClient(t, f), r, want)
			check.Equal(t, "grants asked for", f.grants(), []string{string(grant)})
			check.Equal(t, "clients that came with Basic", f.basic, []string{"shop"}) // at once, not after another way
			check.Equal(t, "token_type", got.Token.TokenType, "Bearer")
			check.Equal(t, "expiry", got.Token.ExpiresAt, f.clock().UTC().Add(lifetime))
			check.Equal(t, "has a refresh token", got.Token.RefreshToken != "", grant != clientcfg.ClientCredentials)
			if c := got.Claims; c == nil || c.Problem != "" || !c.Verified || !strings.Contains(string(c.Payload), `"sub":"somebody"`) {
				t.Errorf("claims %+v", c)
			}
			check.Equal(t, "cache file", got.CacheFile, "")
		})
	}
}

func TestPublicClientSendsNoSecret(t *testing.T) {
	f := newFakeServer(t)
	r := request(f, clientcfg.AuthorizationCode)
	r.ClientSecret = ""
	token(t, newClient(t, f), r, tokenclient.Issued)
	if len(f.basic) > 0 || f.asked[0].Get("client_id") != "shop" || f.asked[0].Has("client_secret") {
		t.Errorf("Basic from %q, and the form %v", f.basic, f.asked[0])
	}
}

func TestSecretGoesInTheFormIfTheServerTakesNoBasic(t *testing.T) {
	f := newFakeServer(t)
	f.metadata = map[string]any{"token_endpoint_auth_methods_supported": []string{"client_secret_post"}}
	token(t, newClient(t, f), request(f, clientcfg.ClientCredentials), tokenclient.Issued)
	if len(f.basic) > 0 || f.asked[0].Get("client_secret") != "s3cret" {
		t.Errorf("Basic from %q, and the form %v", f.basic, f.asked[0])
	}
}

func TestTokenIsReusedThenRefreshedThenAskedAnew(t *testing.T) {
	f := newFakeServer(t)
	c := newClient(t, f)
	r := request(f, clientcfg.Password)
	r.CacheFile = filepath.Join(t.TempDir(), "deep", "token.json")
	steps := []struct {
		name   string
		before func()
		want   tokenclient.Origin
	}{
		{"the first is issued", func() {}, tokenclient.Issued},
		{"the second is reused", func() {}, tokenclient.Reused},
		{"reused until shortly before expiry", func() { f.advance(lifetime - 31*time.Second) }, tokenclient.Reused},
		{"then refreshed", func() { f.advance(time.Second) }, tokenclient.Refreshed},
		{"the refreshed one is reused", func() {}, tokenclient.Reused},
		{"refreshed with the rotated token", func() { f.advance(2 * lifetime) }, tokenclient.Refreshed},
		{"asked anew when the family is revoked", func() { f.advance(lifetime); f.revoked = true }, tokenclient.Issued},
		{"asked anew when forced", func() { r.Force = true }, tokenclient.Issued},
	}
	for _, step := range steps {
		step.before()
		t.Run(step.name, func(t *testing.T) {
			got := token(t, c, r, step.want)
			if got.Token.Scope != "read" || got.CacheFile != r.CacheFile || !got.Claims.Verified {
				t.Errorf("scope %q, kept in %q, claims %+v", got.Token.Scope, got.CacheFile, got.Claims)
			}
		})
	}
	want := []string{"password", "refresh_token", "refresh_token", "refresh_token", "password", "password"}
	check.Equal(t, "grants asked for", f.grants(), want)
}

func TestTokenOfUnknownLifetimeIsNotReused(t *testing.T) {
	f := newFakeServer(t)
	f.answer = func(response map[string]any) { delete(response, "expires_in") }
	r := request(f, clientcfg.ClientCredentials)
	r.CacheDir = t.TempDir()
	for range 2 {
		token(t, newClient(t, f), r, tokenclient.Issued)
	}
}

func TestRefreshGrant(t *testing.T) {
	t.Run("takes the cached token of a user grant", func(t *testing.T) {
		f := newFakeServer(t)
		c := newClient(t, f)
		r := request(f, clientcfg.AuthorizationCode)
		r.CacheDir = t.TempDir()
		token(t, c, r, tokenclient.Issued)
		r.Grant = clientcfg.RefreshToken
		got := token(t, c, r, tokenclient.Refreshed) // asked for, so it is done before expiry too
		r.Grant = clientcfg.AuthorizationCode
		check.Equal(t, "token in the cache", token(t, c, r, tokenclient.Reused).Token, got.Token)
	})
	t.Run("a given token is sent once, for it is rotated", func(t *testing.T) {
		f := newFakeServer(t)
		f.refresh = "given"
		c := newClient(t, f)
		r := request(f, clientcfg.RefreshToken)
		r.CacheDir, r.RefreshToken = t.TempDir(), "given"
		for _, want := range []tokenclient.Origin{tokenclient.Refreshed, tokenclient.Reused, tokenclient.Refreshed} {
			token(t, c, r, want)
			if want == tokenclient.Reused {
				f.advance(lifetime)
			}
		}
		check.Equal(t, "first refresh token", f.asked[0].Get("refresh_token"), "given")
		check.Equal(t, "second refresh token", f.asked[1].Get("refresh_token"), "refresh-1")
	})
	t.Run("takes the grant that has a refresh token", func(t *testing.T) {
		f := newFakeServer(t)
		c := newClient(t, f)
		r := request(f, clientcfg.AuthorizationCode)
		r.CacheDir, r.Username, r.Password = t.TempDir(), "ada", "right"
		f.answer = func(response map[string]any) { delete(response, "refresh_token") }
		token(t, c, r, tokenclient.Issued)
		f.answer = nil
		r.Grant = clientcfg.Password
		token(t, c, r, tokenclient.Issued)
		r.Grant = clientcfg.RefreshToken
		token(t, c, r, tokenclient.Refreshed)
	})
	t.Run("a file with a token of another grant has none", func(t *testing.T) {
		f := newFakeServer(t)
		r := request(f, clientcfg.ClientCredentials)
		r.CacheFile = filepath.Join(t.TempDir(), "token.json")
		token(t, newClient(t, f), r, tokenclient.Issued)
		r.Grant = clientcfg.RefreshToken
		failsWith(t, newClient(t, f), r, "first get a token with authorization_code or password")
	})
	t.Run("without any says what to do", func(t *testing.T) {
		f := newFakeServer(t)
		r := request(f, clientcfg.RefreshToken)
		r.CacheDir = t.TempDir()
		failsWith(t, newClient(t, f), r, "first get a token with authorization_code or password")
	})
}

func TestRefreshFailureOtherThanInvalidGrantIsReported(t *testing.T) {
	f := newFakeServer(t)
	c := newClient(t, f)
	r := request(f, clientcfg.Password)
	r.CacheDir = t.TempDir()
	token(t, c, r, tokenclient.Issued)
	f.advance(lifetime)
	f.refuse = []refusal{{status: 429, header: http.Header{"Retry-After": {"7"}}, body: `{"error":"temporarily_unavailable"}`}}
	_, err := c.Token(t.Context(), r)
	var refused *tokenclient.ServerError
	if !errors.As(err, &refused) || !refused.Limited() {
		t.Fatalf("Token() = %v, want a refusal with status 429", err)
	}
	token(t, c, r, tokenclient.Refreshed) // a 429 uses up nothing
}

func TestServerErrors(t *testing.T) {
	cases := map[string]struct {
		answer refusal
		want   tokenclient.ServerError
		text   string
	}{
		"in full": {
			refusal{401, nil, `{"error":"invalid_client","error_description":"Unknown client.","error_uri":"https://a.example/b"}`},
			tokenclient.ServerError{Status: 401, Code: "invalid_client", Description: "Unknown client.", URI: "https://a.example/b"},
			"the server refused with status 401: invalid_client: Unknown client. (see https://a.example/b)",
		},
		"limited": {
			refusal{429, http.Header{"Retry-After": {"37"}}, `{"error":"temporarily_unavailable"}`},
			tokenclient.ServerError{Status: 429, Code: "temporarily_unavailable", RetryAfter: 37 * time.Second},
			"the server refused with status 429: temporarily_unavailable",
		},
		"a page of a proxy": {
			refusal{502, nil, `<html>`},
			tokenclient.ServerError{Status: 502},
			"the server refused with status 502",
		},
		"a terminal's control codes": {
			refusal{400, nil, `{"error":"invalid_request","error_description":"a\u001b[31mb"}`},
			tokenclient.ServerError{Status: 400, Code: "invalid_request", Description: "a [31mb"},
			"the server refused with status 400: invalid_request: a [31mb",
		},
		"a redirect, which is not followed": {
			refusal{307, http.Header{"Location": {"http://127.0.0.1:1/elsewhere"}}, ``},
			tokenclient.ServerError{Status: 307},
			"the server refused with status 307",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFakeServer(t)
			f.refuse = []refusal{tc.answer}
			_, err := newClient(t, f).Token(t.Context(), request(f, clientcfg.ClientCredentials))
			var refused *tokenclient.ServerError
			if !errors.As(err, &refused) {
				t.Fatalf("Token() = %v, want a refusal", err)
			}
			check.Equal(t, "refusal", *refused, tc.want)
			check.Equal(t, "message", err.Error(), tc.text)
			check.Equal(t, "requests", len(f.grants()), 1)
		})
	}
}

func TestDeadlineShorterThanTheWaitEndsAtOnce(t *testing.T) {
	f := newFakeServer(t)
	f.refuse = []refusal{{429, http.Header{"Retry-After": {"3600"}}, `{"error":"temporarily_unavailable"}`}}
	c := newClient(t, f)
	c.Wait = true
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := c.Token(ctx, request(f, clientcfg.ClientCredentials))
	check.ErrorSays(t, err, "cannot wait 1h0m0s")
}

func TestWaitingTriesAgain(t *testing.T) {
	f := newFakeServer(t)
	f.refuse = []refusal{{429, http.Header{"Retry-After": {"1"}}, `{"error":"temporarily_unavailable"}`}}
	c := newClient(t, f)
	c.Wait = true
	var told string
	c.Notify = func(message string) { told = message }
	token(t, c, request(f, clientcfg.AuthorizationCode), tokenclient.Issued)
	if !strings.Contains(told, "waiting 1s") {
		t.Errorf("the notice is %q", told)
	}
	check.Equal(t, "code of the second attempt", f.asked[1].Get("code"), f.asked[0].Get("code"))
}
