package tokenclient_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/tokenclient"
	"oauth-server/internal/clientcfg"
)

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
