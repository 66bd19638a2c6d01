package httpapi_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/httpapi"
)

// TestCrossOriginForms checks that pages of other sites cannot post any form.
//
// Attack (rfc9700): 4.7, 4.16 CSRF and clickjacking. Forms posted from other sites are refused,
// and pages cannot be framed. Also httpapi.TestBrowserRefusesForeignPages.
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
		for _, path := range []string{"/sign-in", "/sign-out", "/consent", "/consents/withdraw"} {
			t.Run(name+" "+path, func(t *testing.T) {
				body := form("username", "alice", "password", "pass-alice", "authorization", authorization().Encode())
				res := request{path: path, body: body, header: tt.header}.send(t, s)
				if tt.allowed {
					wantStatus(t, res, http.StatusSeeOther)
					return
				}
				wantStatus(t, res, http.StatusForbidden)
				wantPage(t, res, "'self'")
				wantHeader(t, res.Header, "Set-Cookie", "")
			})
		}
	}
}

func TestCookieUnderHTTPS(t *testing.T) {
	s := newServer(t, newFake(), func(o *httpapi.Options) { o.Issuer = "https://id.example" })
	res := post(t, s, "/sign-in", "", url.Values{"username": {"alice"}, "password": {"pass-alice"}})
	wantHeader(t, res.Header, "Set-Cookie", "__Host-oauth_session=cookie-alice; Path=/; Expires=Sat, 02 Jan 2100 03:04:05 GMT; HttpOnly; Secure; SameSite=Lax")
	wantHeader(t, res.Header, "Location", "/")
	wantHeader(t, res.Header, "Strict-Transport-Security", "max-age=31536000")
	holds(t, get(t, s, "/", "__Host-oauth_session=cookie-alice").Body, "alice")
	lacks(t, get(t, s, "/", "oauth_session=cookie-alice").Body, "alice")
}

func TestSignInReplacesTheSession(t *testing.T) {
	f := newFake()
	s := newServer(t, f, nil)
	alice := f.signedIn("alice")
	post(t, s, "/sign-in", alice, url.Values{"username": {"bob"}, "password": {"pass-bob"}})
	check.Equal(t, "sessions", slices.Sorted(maps.Keys(f.sessions)), []string{"cookie-bob"})
}

func TestSignOut(t *testing.T) {
	f := newFake()
	s := newServer(t, f, nil)
	res := post(t, s, "/sign-out", f.signedIn("alice"), url.Values{"authorization": {authorization().Encode()}})
	wantHeader(t, res.Header, "Set-Cookie", "oauth_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax")
	if location := res.Header.Get("Location"); !strings.HasPrefix(location, "/authorize?") {
		t.Fatalf("redirect to %q, want the authorization request", location)
	}
	check.Equal(t, "sessions", len(f.sessions), 0)
}

// TestSignInSaysWhatIsNoUserName checks that the answer says if a name cannot be a user name.
// Otherwise a person who mistyped it would keep trying.
func TestSignInSaysWhatIsNoUserName(t *testing.T) {
	f := newFake()
	s := newServer(t, f, nil)
	f.failSignIn = fmt.Errorf("%w: %w", accounts.ErrSignIn, accounts.ErrUsername)
	res := post(t, s, "/sign-in", "", url.Values{"username": {"Eve Adams"}, "password": {"x"}})
	wantStatus(t, res, http.StatusForbidden)
	holds(t, res.Body, "Check the user name")
	f.failSignIn = accounts.ErrSignIn
	res = post(t, s, "/sign-in", "", url.Values{"username": {"eve"}, "password": {"x"}})
	holds(t, res.Body, "do not match")
	lacks(t, res.Body, "No new user")
}
