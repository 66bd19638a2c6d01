package tokenclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
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
			r, want := request(f, grant), tokenclient.Issued
			if grant == clientcfg.RefreshToken {
				f.refresh, r.RefreshToken, want = "given", "given", tokenclient.Refreshed
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

// TestClientAuthentication: a public client sends no secret, and another one sends its secret in the form if the server takes no
// Basic.
func TestClientAuthentication(t *testing.T) {
	for secret, methods := range map[string][]string{"": {"client_secret_basic", "none"}, "s3cret": {"client_secret_post"}} {
		f := newFakeServer(t)
		f.metadata = map[string]any{"token_endpoint_auth_methods_supported": methods}
		r := request(f, clientcfg.AuthorizationCode)
		r.ClientSecret = secret
		token(t, newClient(t, f), r, tokenclient.Issued)
		check.Equal(t, "clients that came with Basic", f.basic, nil)
		check.Equal(t, "form", []string{f.asked[0].Get("client_id"), f.asked[0].Get("client_secret")}, []string{"shop", secret})
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
	t.Run("without one it says what to do", func(t *testing.T) {
		f := newFakeServer(t)
		r := request(f, clientcfg.RefreshToken)
		r.CacheFile = filepath.Join(t.TempDir(), "token.json")
		for range 2 {
			failsWith(t, newClient(t, f), r, "first get a token with authorization_code or password")
			r.Grant = clientcfg.ClientCredentials // whose token has none
			token(t, newClient(t, f), r, tokenclient.Issued)
			r.Grant, r.Force = clientcfg.RefreshToken, true
		}
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
	check.Equal(t, "limited", check.As[*tokenclient.ServerError](t, err).Limited(), true)
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
			check.Equal(t, "refusal", *check.As[*tokenclient.ServerError](t, err), tc.want)
			check.Equal(t, "message", err.Error(), tc.text)
			check.Equal(t, "requests", len(f.grants()), 1)
		})
	}
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

func TestAuthorizeNeedsEndpointAndPKCE(t *testing.T) {
	for field, value := range map[string]any{
		"authorization_endpoint":           "",
		"code_challenge_methods_supported": []string{"plain"},
	} {
		f := newFakeServer(t)
		f.metadata = map[string]any{field: value}
		if _, err := newClient(t, f).Token(t.Context(), request(f, clientcfg.AuthorizationCode)); err == nil {
			t.Errorf("a token without a useful %s", field)
		}
	}
}

func TestAuthorizationResponseIsChecked(t *testing.T) {
	cases := map[string]struct {
		change func(q url.Values)
		want   string
	}{
		"another issuer": {func(q url.Values) { q.Set("iss", "https://evil.example") }, "another issuer"},
		"no issuer":      {func(q url.Values) { q.Del("iss") }, "another issuer"},
		"neither":        {func(q url.Values) { q.Del("code") }, "neither a code nor an error"},
		"denied": {func(q url.Values) {
			q.Del("code")
			q.Set("error", "access_denied")
			q.Set("error_description", "The user said no.")
		}, "the server refused: access_denied: The user said no."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFakeServer(t)
			f.redirect = tc.change
			failsWith(t, newClient(t, f), request(f, clientcfg.AuthorizationCode), tc.want)
			check.Equal(t, "grants asked for", f.grants(), []string{})
		})
	}
}

func TestServerWithoutIssParameterIsTaken(t *testing.T) {
	f := newFakeServer(t)
	f.metadata = map[string]any{"authorization_response_iss_parameter_supported": false}
	f.redirect = func(q url.Values) { q.Del("iss") }
	token(t, newClient(t, f), request(f, clientcfg.AuthorizationCode), tokenclient.Issued)
}

// Anybody on the machine can knock at the listener; only the real answer counts.
func TestStrangersAtTheListenerEndNothing(t *testing.T) {
	f := newFakeServer(t)
	c := newClient(t, f)
	c.Show = func(ctx context.Context, address string) error {
		u, err := url.Parse(address)
		if err != nil {
			return err
		}
		q := u.Query()
		back, state := q.Get("redirect_uri"), url.QueryEscape(q.Get("state"))
		for _, knock := range []struct {
			address string
			status  int
		}{
			{back, http.StatusBadRequest},
			{back + "?code=evil&state=guessed&iss=" + url.QueryEscape(f.URL), http.StatusBadRequest},
			{back + "?code=a&code=b&state=" + state, http.StatusBadRequest},
			{back + "?%zz", http.StatusBadRequest},
			{strings.Replace(back, "/callback", "/favicon.ico", 1), http.StatusNotFound},
			{strings.Replace(back, "127.0.0.1", "localhost", 1), http.StatusMisdirectedRequest},
			{address, http.StatusOK},
		} {
			if status, err := browse(ctx, knock.address); err != nil || status != knock.status {
				t.Errorf("%s: status %d, %v, want %d", knock.address, status, err, knock.status)
			}
		}
		return nil
	}
	token(t, c, request(f, clientcfg.AuthorizationCode), tokenclient.Issued)
	check.Equal(t, "code", f.asked[0].Get("code"), "code-1")
}

func TestSignInWaitIsBounded(t *testing.T) {
	f := newFakeServer(t)
	c := newClient(t, f)
	ctx, cancel := context.WithCancelCause(t.Context())
	c.Show = func(context.Context, string) error { cancel(errors.New("time is up")); return nil }
	_, err := c.Token(ctx, request(f, clientcfg.AuthorizationCode))
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "the sign-in was not finished in time") {
		t.Errorf("Token() = %v", err)
	}
}

func TestRedirectAddress(t *testing.T) {
	f := newFakeServer(t)
	r := request(f, clientcfg.AuthorizationCode)
	token(t, newClient(t, f), r, tokenclient.Issued)
	if uri := f.asked[0].Get("redirect_uri"); !regexp.MustCompile(`^http://127\.0\.0\.1:\d+/callback$`).MatchString(uri) {
		t.Errorf("redirect_uri is %s", uri)
	}

	busy, err := net.Listen("tcp4", "127.0.0.1:0")
	check.OK(t, err)
	defer func() { _ = busy.Close() }()
	r.RedirectPort = busy.Addr().(*net.TCPAddr).Port
	failsWith(t, newClient(t, f), r, "listen for the code")
}

func TestReuseNeedsNoServer(t *testing.T) {
	f := newFakeServer(t)
	c := newClient(t, f)
	r := request(f, clientcfg.ClientCredentials)
	r.CacheDir = t.TempDir()
	first := token(t, c, r, tokenclient.Issued)
	f.Close()
	second := token(t, c, r, tokenclient.Reused)
	check.Equal(t, "token", second.Token, first.Token)
	check.Equal(t, "claims", string(second.Claims.Payload), string(first.Claims.Payload))
	if second.Claims.Verified || second.Claims.Problem == "" {
		t.Errorf("verified without keys: %+v", second.Claims)
	}
}

func TestCacheDirKeepsKeysApart(t *testing.T) {
	f := newFakeServer(t)
	c := newClient(t, f)
	base := request(f, clientcfg.Password)
	base.CacheDir = t.TempDir()
	variants := map[string]func(r *tokenclient.Request){
		"as it is":       func(*tokenclient.Request) {},
		"another client": func(r *tokenclient.Request) { r.ClientID = "other" },
		"another user":   func(r *tokenclient.Request) { r.Username = "grace" },
		"another scope":  func(r *tokenclient.Request) { r.Scopes = []string{"read", "write"} },
		"another grant":  func(r *tokenclient.Request) { r.Grant = clientcfg.ClientCredentials },
	}
	for name, change := range variants {
		r := base
		change(&r)
		t.Run(name, func(t *testing.T) { token(t, c, r, tokenclient.Issued) })
	}
	r := base
	r.Scopes = []string{"write", "read", "write"}
	token(t, c, r, tokenclient.Reused) // the order of scopes means nothing
}

// Without the lock both would refresh with the same token, and the fake server
// would revoke the family, as a real one must.
func TestConcurrentRunsRefreshOnce(t *testing.T) {
	f := newFakeServer(t)
	r := request(f, clientcfg.Password)
	r.CacheDir = t.TempDir()
	token(t, newClient(t, f), r, tokenclient.Issued)
	f.advance(lifetime)
	var wg sync.WaitGroup
	tokens := make([]string, 8)
	for i := range tokens {
		wg.Go(func() {
			if got, err := newClient(t, f).Token(t.Context(), r); err == nil {
				tokens[i] = got.Token.AccessToken
			} else {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	check.Equal(t, "grants asked for", f.grants(), []string{"password", "refresh_token"})
	check.Equal(t, "tokens", slices.Compact(tokens), tokens[:1])
}

func TestCacheFileIsPrivate(t *testing.T) {
	f := newFakeServer(t)
	c := newClient(t, f)
	r := request(f, clientcfg.ClientCredentials)
	r.CacheDir = filepath.Join(t.TempDir(), "made")
	file := token(t, c, r, tokenclient.Issued).CacheFile
	for path, want := range map[string]os.FileMode{file: 0o600, r.CacheDir: os.ModeDir | 0o700} {
		info, err := os.Stat(path)
		check.OK(t, err)
		if info.Mode()&^os.ModeSetgid != want { // a directory may inherit that bit
			t.Errorf("the mode of %s is %v, want %v", path, info.Mode(), want)
		}
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o700} {
		check.OK(t, os.Chmod(file, mode))
		_, err := c.Token(t.Context(), r)
		check.ErrorIs(t, err, tokenclient.ErrExposed)
	}
	if left, err := filepath.Glob(filepath.Join(r.CacheDir, ".token-*")); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %q, %v", left, err)
	}
}

func TestCacheFileThatCannotServe(t *testing.T) {
	cases := map[string]struct {
		make func(path string) error
		want string
	}{
		"damaged":           {func(path string) error { return os.WriteFile(path, []byte("{"), 0o600) }, "damaged; remove it"},
		"empty":             {func(path string) error { return os.WriteFile(path, nil, 0o600) }, "damaged; remove it"},
		"a directory":       {func(path string) error { return os.Mkdir(path, 0o700) }, "not a small regular file"},
		"too large":         {func(path string) error { return os.WriteFile(path, make([]byte, 2<<20), 0o600) }, "not a small regular file"},
		"of another client": {func(path string) error { return os.WriteFile(path, []byte(`{"key":{"client_id":"theirs"}}`), 0o600) }, "theirs"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFakeServer(t)
			r := request(f, clientcfg.ClientCredentials)
			r.CacheFile = filepath.Join(t.TempDir(), "token.json")
			check.OK(t, tc.make(r.CacheFile))
			failsWith(t, newClient(t, f), r, tc.want)
			check.Equal(t, "grants asked for before the cache is known to work", f.grants(), []string{})
		})
	}
}

func TestTokenIsHandedOverWhenItCannotBeKept(t *testing.T) {
	f := newFakeServer(t)
	c := newClient(t, f)
	r := request(f, clientcfg.ClientCredentials)
	r.CacheFile = filepath.Join(t.TempDir(), "token.json")
	f.answer = func(map[string]any) { // while the token is under way, its place is taken
		if err := os.MkdirAll(filepath.Join(r.CacheFile, "occupied"), 0o700); err != nil {
			t.Error(err)
		}
	}
	var told string
	c.Notify = func(message string) { told = message }
	got := token(t, c, r, tokenclient.Issued)
	if got.Token.AccessToken == "" || got.CacheFile != "" {
		t.Errorf("got %+v", got)
	}
	if !strings.Contains(told, "not cached") || strings.Contains(told, got.Token.AccessToken) {
		t.Errorf("the notice is %q", told)
	}
}

func TestRequestValidate(t *testing.T) {
	good := tokenclient.Request{Issuer: "https://as.example", Grant: clientcfg.ClientCredentials, ClientID: "c", ClientSecret: "s"}
	if err := good.Validate(); err != nil {
		t.Fatalf("Validate() = %v", err)
	}
	cases := map[string]struct {
		change func(r *tokenclient.Request)
		want   string
	}{
		"plain http":          {func(r *tokenclient.Request) { r.Issuer = "http://as.example" }, "secrets need https"},
		"no issuer":           {func(r *tokenclient.Request) { r.Issuer = "" }, "not an absolute"},
		"another scheme":      {func(r *tokenclient.Request) { r.Issuer = "ftp://as.example" }, "not an absolute"},
		"issuer with query":   {func(r *tokenclient.Request) { r.Issuer += "?a" }, "without query"},
		"issuer with user":    {func(r *tokenclient.Request) { r.Issuer = "https://u:p@as.example" }, "user information"},
		"no grant":            {func(r *tokenclient.Request) { r.Grant = "" }, `grant: is required: one of client_credentials, `},
		"unknown grant":       {func(r *tokenclient.Request) { r.Grant = "implicit" }, `"implicit" is not one of`},
		"no client":           {func(r *tokenclient.Request) { r.ClientID = "" }, "client-id"},
		"no secret":           {func(r *tokenclient.Request) { r.ClientSecret = "" }, "client-secret"},
		"bad scope":           {func(r *tokenclient.Request) { r.Scopes = []string{"a b"} }, "scope-token"},
		"no password":         {func(r *tokenclient.Request) { r.Grant = clientcfg.Password }, "needs both"},
		"no refresh, nowhere": {func(r *tokenclient.Request) { r.Grant = clientcfg.RefreshToken }, "refresh-token"},
		"bad port":            {func(r *tokenclient.Request) { r.Grant, r.RedirectPort = clientcfg.AuthorizationCode, 70000 }, "not a port"},
		"bad path":            {func(r *tokenclient.Request) { r.Grant, r.RedirectPath = clientcfg.AuthorizationCode, "cb" }, "from the root"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := good
			tc.change(&r)
			check.ErrorSays(t, r.Validate(), tc.want)
			failsWith(t, &tokenclient.Client{}, r, tc.want)
		})
	}
	bad := tokenclient.Request{}
	for _, field := range []string{"issuer", "grant", "client-id"} { // all problems together
		check.ErrorSays(t, bad.Validate(), field)
	}
	for _, grant := range clientcfg.Grants() {
		check.ErrorSays(t, bad.Validate(), string(grant))
	}
}

func TestMetadataURL(t *testing.T) {
	for issuer, want := range map[string]string{
		"https://as.example":        "https://as.example/.well-known/oauth-authorization-server",
		"https://as.example/":       "https://as.example/.well-known/oauth-authorization-server",
		"https://as.example/t/one":  "https://as.example/.well-known/oauth-authorization-server/t/one",
		"https://as.example/t%2Fx/": "https://as.example/.well-known/oauth-authorization-server/t%2Fx",
		"http://[::1]:9096":         "http://[::1]:9096/.well-known/oauth-authorization-server",
		"http://localhost:9096":     "http://localhost:9096/.well-known/oauth-authorization-server",
	} {
		if got, err := tokenclient.MetadataURL(issuer); got != want || err != nil {
			t.Errorf("MetadataURL(%q) = %q, %v, want %q", issuer, got, err, want)
		}
	}
}

func TestMetadataThatCannotBeTrusted(t *testing.T) {
	cases := map[string]struct {
		field string
		value any
		want  string
	}{
		"another issuer":        {"issuer", "https://evil.example", "its issuer is"},
		"a slash more":          {"issuer", "+/", "its issuer is"},
		"no token endpoint":     {"token_endpoint", "", "no token_endpoint"},
		"token over http":       {"token_endpoint", "http://as.example/token", "token_endpoint"},
		"authorize over http":   {"authorization_endpoint", "http://as.example/a", "authorization_endpoint"},
		"keys over http":        {"jwks_uri", "http://as.example/jwks", "jwks_uri"},
		"token elsewhere":       {"token_endpoint", "https://evil.example/token", "token_endpoint: "},
		"on another port":       {"token_endpoint", "http://127.0.0.1:1/token", "token_endpoint: "},
		"authorize elsewhere":   {"authorization_endpoint", "https://evil.example/a", "authorization_endpoint: "},
		"a field of wrong type": {"token_endpoint", 7, "not a JSON object"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFakeServer(t)
			if tc.value == "+/" {
				tc.value = f.URL + "/"
			}
			f.metadata = map[string]any{tc.field: tc.value}
			failsWith(t, newClient(t, f), request(f, clientcfg.ClientCredentials), tc.want)
			check.Equal(t, "grants asked for", f.grants(), []string{}) // the secret was sent nowhere
		})
	}
}

// TestMetadataOverTLS: an issuer that proves who it is may have endpoints elsewhere, with TLS.
func TestMetadataOverTLS(t *testing.T) {
	for endpoint, want := range map[string]string{
		"https://tokens.example/token": "",
		"http://127.0.0.1/token":       "must have the address of the issuer",
	} {
		mux := http.NewServeMux()
		server := httptest.NewTLSServer(mux)
		t.Cleanup(server.Close)
		mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			check.OK(t, json.NewEncoder(w).Encode(map[string]string{"issuer": server.URL, "token_endpoint": endpoint}))
		})
		_, err := tokenclient.Discover(t.Context(), server.Client(), server.URL)
		if want == "" {
			check.OK(t, err)
			continue
		}
		check.ErrorSays(t, err, want)
		check.Equal(t, "it is of the issuer", errors.Is(err, tokenclient.ErrNoIssuer), true)
	}
}

func TestClaims(t *testing.T) {
	cases := map[string]struct {
		change  func(f *fakeServer)
		opaque  bool
		problem string
	}{
		"an opaque token":       {func(f *fakeServer) { f.answer = func(r map[string]any) { r["access_token"] = "opaque" } }, true, ""},
		"another issuer":        {func(f *fakeServer) { f.claims = func(c map[string]any) { c["iss"] = "https://evil.example" } }, false, "issued by a different provider"},
		"expired":               {func(f *fakeServer) { f.claims = func(c map[string]any) { c["exp"] = 1 } }, false, "expired"},
		"no keys are published": {func(f *fakeServer) { f.metadata = map[string]any{"jwks_uri": ""} }, false, "publishes no keys"},
		"a forged signature": {func(f *fakeServer) {
			f.answer = func(r map[string]any) {
				parts := strings.Split(r["access_token"].(string), ".")
				r["access_token"] = parts[0] + "." + parts[1] + "." + strings.Repeat("A", len(parts[2]))
			}
		}, false, "signature"},
		"alg none": {func(f *fakeServer) {
			f.answer = func(r map[string]any) {
				r["access_token"] = "eyJhbGciOiJub25lIn0." + strings.Split(r["access_token"].(string), ".")[1] + "."
			}
		}, false, "algorithm"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFakeServer(t)
			tc.change(f)
			c := token(t, newClient(t, f), request(f, clientcfg.ClientCredentials), tokenclient.Issued).Claims
			if c == nil || tc.opaque {
				if (c == nil) != tc.opaque {
					t.Errorf("claims %+v", c)
				}
				return
			}
			if c.Verified || !strings.Contains(c.Problem, tc.problem) || !json.Valid(c.Payload) {
				t.Errorf("verified %t, problem %q, payload %s", c.Verified, c.Problem, c.Payload)
			}
		})
	}
}
