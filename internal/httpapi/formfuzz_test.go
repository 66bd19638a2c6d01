package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

// FuzzForm sends bodies to the endpoints for clients. Only the owner of the secret gets an answer, and
// only the one valid token is active.
//
// Attack (input): Hostile forms and queries. They are bounded and parsed strictly. Repeated
// parameters are refused. Also httpapi.FuzzParams, httpapi.FuzzPages, httpapi.TestBadForm.
func FuzzForm(f *testing.F) {
	f.Add("/token", "grant_type=client_credentials&client_id=shop&client_secret=s3cret", formType)
	f.Add("/token", "grant_type=authorization_code&code=a&code=b", formType+"; charset=UTF-8")
	f.Add("/token", "grant_type=%00&client_id=%ff&=&&x", formType)
	f.Add("/token", "grant_type", "text/plain;;")
	f.Add("/token", "%=%&+=+&;a=b", "")
	f.Add("/introspect", "token=good&client_id=shop&client_secret=s3cret", formType)
	f.Add("/introspect", "token=bad&client_id=shop&client_secret=s3cret", formType)
	f.Add("/revoke", "token=good&token=bad&client_id=shop", formType)
	f.Add("/revoke", "token_type_hint=refresh_token&client_id=shop", formType)
	s := newServer(f, newFake(), nil)
	f.Fuzz(func(t *testing.T, path, body, contentType string) {
		if path != "/introspect" && path != "/revoke" {
			path = "/token"
		}
		res := request{path: path, body: body, header: http.Header{"Content-Type": {contentType}}}.send(t, s)
		if res.StatusCode != http.StatusOK || path == "/token" {
			wantAnswer(t, res)
		}
		if res.StatusCode != http.StatusOK {
			return
		}
		v, err := url.ParseQuery(body)
		check.OK(t, err)
		check.Equal(t, "secrets that bought an answer", notEmpty(v["client_secret"]), []string{secretOf})
		wantHeader(t, res.Header, "Cache-Control", "no-store")
		switch path {
		case "/revoke":
			check.Equal(t, "the body", res.Body, "")
		case "/introspect":
			var doc struct{ Active bool }
			check.OK(t, json.Unmarshal([]byte(res.Body), &doc))
			check.Equal(t, "active", doc.Active, slices.Equal(notEmpty(v["token"]), []string{"good"}))
		}
	})
}

// FuzzPages posts the forms of the pages with any authorization request. Only the right password
// signs in, only the binding makes a code, and redirects outside this server lead only to
// registered URIs.
func FuzzPages(f *testing.F) {
	f.Add("/sign-in", authorization().Encode(), "alice", "pass-alice")
	f.Add("/sign-in", "//evil.example", "alice", "wrong")
	f.Add("/sign-in", "client_id=shop&redirect_uri=https://evil.example", " bob ", "pass-bob")
	f.Add("/sign-out", "a=\r\nLocation: https://evil.example", "", "")
	f.Add("/consent", authorization().Encode(), "allow", "AAAA")
	f.Add("/authorize", authorization().Encode()+"&state=2", "x", "y")
	fake := newFake()
	s := newServer(f, fake, nil)
	f.Fuzz(func(t *testing.T, path, inner, first, second string) {
		if !slices.Contains([]string{"/sign-in", "/sign-out", "/consent", "/authorize"}, path) {
			path = "/consent"
		}
		cookie := fake.signedIn("carol")
		body := form("authorization", inner, "username", first, "password", second, "decision", first, "binding", second)
		res := request{path: path, body: body, header: http.Header{"Cookie": {cookie}}}.send(t, s)
		if res.StatusCode >= http.StatusInternalServerError {
			t.Fatalf("status %d: %s", res.StatusCode, res.Body)
		}
		setsCookie := strings.Contains(res.Header.Get("Set-Cookie"), "=cookie-")
		check.Equal(t, "signed in", setsCookie, path == "/sign-in" && setsCookie && second == "pass-"+strings.TrimSpace(first))
		if len(fake.approved) > 0 {
			t.Fatalf("a code for %q without the binding", fake.approved)
		}
		if location := res.Header.Get("Location"); location != "" {
			ours := location == "/" || strings.HasPrefix(location, "/authorize?")
			clients := slices.ContainsFunc(fake.client.RedirectURIs, func(u string) bool {
				return strings.HasPrefix(location, u+"?") || strings.HasPrefix(location, u+"&")
			})
			if !ours && !clients || strings.ContainsAny(location, "\r\n") {
				t.Errorf("it leads to %q", location)
			}
		}
	})
}
