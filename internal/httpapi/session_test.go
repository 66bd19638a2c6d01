package httpapi_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"oauth-server/internal/grants"
	"oauth-server/internal/httpapi"
)

// TestCrossOriginForms: pages of other sites can post nothing.
func TestCrossOriginForms(t *testing.T) {
	f := newFake()
	s := newServer(t, f, func(o *httpapi.Options) { o.Issuer = "https://outside.example" })
	tests := map[string]struct {
		header  http.Header
		allowed bool
	}{
		"same origin":           {http.Header{"Origin": {"http://id.example"}, "Sec-Fetch-Site": {"same-origin"}}, true},
		"issuer behind a proxy": {http.Header{"Origin": {"https://outside.example"}}, true},
		"old browser":           {http.Header{"Origin": {"http://id.example"}}, true},
		"not a browser":         {http.Header{}, true},
		"cross site":            {http.Header{"Origin": {"https://evil.example"}, "Sec-Fetch-Site": {"cross-site"}}, false},
		"same site":             {http.Header{"Origin": {"https://sub.id.example"}, "Sec-Fetch-Site": {"same-site"}}, false},
		"old browser, foreign":  {http.Header{"Origin": {"https://evil.example"}}, false},
		"null origin":           {http.Header{"Origin": {"null"}}, false},
	}
	for name, tt := range tests {
		for _, path := range []string{"/sign-in", "/sign-out", "/consent"} {
			t.Run(name+" "+path, func(t *testing.T) {
				body := form("username", "alice", "password", "pass-alice", "authorization", authorization().Encode())
				res := request{path: path, body: body, header: tt.header}.send(t, s)
				if tt.allowed {
					require.Equal(t, http.StatusSeeOther, res.StatusCode)
					return
				}
				require.Equal(t, http.StatusForbidden, res.StatusCode)
				requirePage(t, res, "'self'")
				require.Empty(t, res.Header.Get("Set-Cookie"))
			})
		}
	}
}

func TestCookieUnderHTTPS(t *testing.T) {
	s := newServer(t, newFake(), func(o *httpapi.Options) { o.Issuer = "https://id.example" })
	res := post(t, s, "/sign-in", "", url.Values{"username": {"alice"}, "password": {"pass-alice"}})
	require.Equal(t, "__Host-oauth_session=cookie-alice; Path=/; Expires=Sat, 02 Jan 2100 03:04:05 GMT; HttpOnly; Secure; SameSite=Lax",
		res.Header.Get("Set-Cookie"))
	require.Equal(t, "/", res.Header.Get("Location"))
	require.Equal(t, "max-age=31536000", res.Header.Get("Strict-Transport-Security"))
	require.Contains(t, get(t, s, "/", "__Host-oauth_session=cookie-alice").Body, "alice")
	require.NotContains(t, get(t, s, "/", "oauth_session=cookie-alice").Body, "alice")
}

func TestSignInReplacesTheSession(t *testing.T) {
	f := newFake()
	s := newServer(t, f, nil)
	alice := f.signedIn("alice")
	post(t, s, "/sign-in", alice, url.Values{"username": {"bob"}, "password": {"pass-bob"}})
	require.NotContains(t, f.sessions, "cookie-alice")
	require.Contains(t, f.sessions, "cookie-bob")
}

func TestSignOut(t *testing.T) {
	f := newFake()
	s := newServer(t, f, nil)
	res := post(t, s, "/sign-out", f.signedIn("alice"), url.Values{"authorization": {authorization().Encode()}})
	require.Equal(t, "oauth_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax", res.Header.Get("Set-Cookie"))
	require.True(t, strings.HasPrefix(res.Header.Get("Location"), "/authorize?"))
	require.Empty(t, f.sessions)
}

func TestSignInTrouble(t *testing.T) {
	f := newFake()
	s := newServer(t, f, nil)
	v := url.Values{"username": {"alice"}, "password": {"pass-alice"}}
	f.failSignIn = errDisk
	require.Equal(t, http.StatusInternalServerError, post(t, s, "/sign-in", "", v).StatusCode)
	f.failSignIn = &grants.Error{Code: grants.TemporarilyUnavailable, Description: "too busy"}
	require.Equal(t, http.StatusServiceUnavailable, post(t, s, "/sign-in", "", v).StatusCode)
}
