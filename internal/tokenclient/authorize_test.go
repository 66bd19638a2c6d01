package tokenclient_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/tokenclient"
)

func TestAuthorizeNeedsEndpointAndPKCE(t *testing.T) {
	for field, value := range map[string]any{
		"authorization_endpoint":           "",
		"code_challenge_methods_supported": []string{"plain"},
	} {
		f := newFakeServer(t)
		f.metadata = map[string]any{field: value}
		_, err := newClient(t, f).Token(t.Context(), request(f, clientcfg.AuthorizationCode))
		require.Error(t, err, field)
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
			_, err := newClient(t, f).Token(t.Context(), request(f, clientcfg.AuthorizationCode))
			require.ErrorContains(t, err, tc.want)
			require.Empty(t, f.grants(), "no code was redeemed")
		})
	}
}

func TestServerWithoutIssParameterIsTaken(t *testing.T) {
	f := newFakeServer(t)
	f.metadata = map[string]any{"authorization_response_iss_parameter_supported": false}
	f.redirect = func(q url.Values) { q.Del("iss") }
	_, err := newClient(t, f).Token(t.Context(), request(f, clientcfg.AuthorizationCode))
	require.NoError(t, err)
}

// Anybody on the machine can knock at the listener; only the real answer counts.
func TestStrangersAtTheListenerEndNothing(t *testing.T) {
	f := newFakeServer(t)
	c := newClient(t, f)
	c.Show = func(ctx context.Context, address string) error {
		u, err := url.Parse(address)
		require.NoError(t, err)
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
		} {
			status, err := browse(ctx, knock.address)
			require.NoError(t, err)
			require.Equal(t, knock.status, status, knock.address)
		}
		status, err := browse(ctx, address)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, status)
		return nil
	}
	got, err := c.Token(t.Context(), request(f, clientcfg.AuthorizationCode))
	require.NoError(t, err)
	require.Equal(t, tokenclient.Issued, got.Origin)
	require.Equal(t, "code-1", f.asked[0].Get("code"))
}

func TestSignInWaitIsBounded(t *testing.T) {
	f := newFakeServer(t)
	c := newClient(t, f)
	ctx, cancel := context.WithCancelCause(t.Context())
	c.Show = func(context.Context, string) error { cancel(errors.New("time is up")); return nil }
	_, err := c.Token(ctx, request(f, clientcfg.AuthorizationCode))
	require.ErrorContains(t, err, "nobody finished signing in")
	require.ErrorIs(t, err, context.Canceled)
}

func TestRedirectAddress(t *testing.T) {
	f := newFakeServer(t)
	r := request(f, clientcfg.AuthorizationCode)
	_, err := newClient(t, f).Token(t.Context(), r)
	require.NoError(t, err)
	require.Regexp(t, `^http://127\.0\.0\.1:\d+/callback$`, f.asked[0].Get("redirect_uri"))

	busy, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, busy.Close()) }()
	r.RedirectPort = busy.Addr().(*net.TCPAddr).Port
	_, err = newClient(t, f).Token(t.Context(), r)
	require.ErrorContains(t, err, "listen for the code")
}
