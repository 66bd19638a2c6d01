package tokenclient_test

import (
	"context"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/tokenclient"
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

func TestTokenByEachGrant(t *testing.T) {
	for _, grant := range clientcfg.Grants() {
		t.Run(string(grant), func(t *testing.T) {
			f := newFakeServer(t)
			r := request(f, grant)
			if grant == clientcfg.RefreshToken {
				f.refresh = "given"
				r.RefreshToken = "given"
			}
			got, err := newClient(t, f).Token(t.Context(), r)
			require.NoError(t, err)
			require.Equal(t, []string{string(grant)}, f.grants())
			require.Equal(t, []string{"shop"}, f.basic, "a secret goes by Basic, and at once")
			require.Equal(t, "Bearer", got.Token.TokenType)
			require.Equal(t, f.clock().UTC().Add(lifetime), got.Token.ExpiresAt)
			require.Equal(t, grant != clientcfg.ClientCredentials, got.Token.RefreshToken != "")
			require.NotNil(t, got.Claims)
			require.Empty(t, got.Claims.Problem)
			require.True(t, got.Claims.Verified)
			require.Contains(t, string(got.Claims.Payload), `"sub":"somebody"`)
			require.Empty(t, got.CacheFile)
		})
	}
}

func TestPublicClientSendsNoSecret(t *testing.T) {
	f := newFakeServer(t)
	r := request(f, clientcfg.AuthorizationCode)
	r.ClientSecret = ""
	_, err := newClient(t, f).Token(t.Context(), r)
	require.NoError(t, err)
	require.Empty(t, f.basic)
	require.Equal(t, "shop", f.asked[0].Get("client_id"))
	require.NotContains(t, f.asked[0], "client_secret")
}

func TestSecretGoesInTheFormIfTheServerTakesNoBasic(t *testing.T) {
	f := newFakeServer(t)
	f.metadata = map[string]any{"token_endpoint_auth_methods_supported": []string{"client_secret_post"}}
	_, err := newClient(t, f).Token(t.Context(), request(f, clientcfg.ClientCredentials))
	require.NoError(t, err)
	require.Empty(t, f.basic)
	require.Equal(t, "s3cret", f.asked[0].Get("client_secret"))
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
		got, err := c.Token(t.Context(), r)
		require.NoError(t, err, step.name)
		require.Equal(t, step.want, got.Origin, step.name)
		require.Equal(t, "read", got.Token.Scope, step.name)
		require.Equal(t, r.CacheFile, got.CacheFile, step.name)
		require.True(t, got.Claims.Verified, step.name)
	}
	want := []string{"password", "refresh_token", "refresh_token", "refresh_token", "password", "password"}
	require.Empty(t, cmp.Diff(want, f.grants()))
}

func TestTokenOfUnknownLifetimeIsNotReused(t *testing.T) {
	f := newFakeServer(t)
	f.answer = func(response map[string]any) { delete(response, "expires_in") }
	r := request(f, clientcfg.ClientCredentials)
	r.CacheDir = t.TempDir()
	for range 2 {
		got, err := newClient(t, f).Token(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, tokenclient.Issued, got.Origin)
	}
}

func TestRefreshGrant(t *testing.T) {
	t.Run("takes the cached token of a user grant", func(t *testing.T) {
		f := newFakeServer(t)
		c := newClient(t, f)
		r := request(f, clientcfg.AuthorizationCode)
		r.CacheDir = t.TempDir()
		_, err := c.Token(t.Context(), r)
		require.NoError(t, err)
		r.Grant = clientcfg.RefreshToken
		got, err := c.Token(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, tokenclient.Refreshed, got.Origin, "asked for, so it is done before expiry too")
		r.Grant = clientcfg.AuthorizationCode
		again, err := c.Token(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, tokenclient.Reused, again.Origin)
		require.Equal(t, got.Token, again.Token, "the cache holds the refreshed one")
	})
	t.Run("a given token is sent once, for it is rotated", func(t *testing.T) {
		f := newFakeServer(t)
		f.refresh = "given"
		c := newClient(t, f)
		r := request(f, clientcfg.RefreshToken)
		r.CacheDir, r.RefreshToken = t.TempDir(), "given"
		for _, want := range []tokenclient.Origin{tokenclient.Refreshed, tokenclient.Reused, tokenclient.Refreshed} {
			got, err := c.Token(t.Context(), r)
			require.NoError(t, err)
			require.Equal(t, want, got.Origin)
			if want == tokenclient.Reused {
				f.advance(lifetime)
			}
		}
		require.Equal(t, "given", f.asked[0].Get("refresh_token"))
		require.Equal(t, "refresh-1", f.asked[1].Get("refresh_token"))
	})
	t.Run("without any says what to do", func(t *testing.T) {
		f := newFakeServer(t)
		r := request(f, clientcfg.RefreshToken)
		r.CacheDir = t.TempDir()
		_, err := newClient(t, f).Token(t.Context(), r)
		require.ErrorContains(t, err, "get a token with authorization_code or password first")
	})
}

func TestRefreshFailureOtherThanInvalidGrantIsReported(t *testing.T) {
	f := newFakeServer(t)
	c := newClient(t, f)
	r := request(f, clientcfg.Password)
	r.CacheDir = t.TempDir()
	_, err := c.Token(t.Context(), r)
	require.NoError(t, err)
	f.advance(lifetime)
	f.refuse = []refusal{{status: 429, header: http.Header{"Retry-After": {"7"}}, body: `{"error":"temporarily_unavailable"}`}}
	_, err = c.Token(t.Context(), r)
	var refused *tokenclient.ServerError
	require.ErrorAs(t, err, &refused)
	require.True(t, refused.Limited())
	got, err := c.Token(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, tokenclient.Refreshed, got.Origin, "the 429 burnt nothing")
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
			require.ErrorAs(t, err, &refused)
			require.Empty(t, cmp.Diff(tc.want, *refused))
			require.EqualError(t, err, tc.text)
			require.Len(t, f.grants(), 1, "asked once")
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
	require.ErrorContains(t, err, "no time left to wait 1h0m0s")
}

func TestWaitingTriesAgain(t *testing.T) {
	f := newFakeServer(t)
	f.refuse = []refusal{{429, http.Header{"Retry-After": {"1"}}, `{"error":"temporarily_unavailable"}`}}
	c := newClient(t, f)
	c.Wait = true
	var told string
	c.Notify = func(message string) { told = message }
	got, err := c.Token(t.Context(), request(f, clientcfg.AuthorizationCode))
	require.NoError(t, err)
	require.Equal(t, tokenclient.Issued, got.Origin)
	require.Contains(t, told, "waiting 1s")
	require.Equal(t, f.asked[0].Get("code"), f.asked[1].Get("code"), "the same code again")
}
