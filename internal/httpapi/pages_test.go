package httpapi_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"oauth-server/internal/httpapi"
)

func TestIssuerPath(t *testing.T) {
	f := newFake()
	s := newServer(t, f, func(o *httpapi.Options) { o.Issuer = "http://id.example/tenant" })
	page := get(t, s, "/tenant/authorize?"+authorization().Encode(), "").Body
	holds(t, page, `action="/tenant/sign-in"`)
	res := post(t, s, "/tenant/sign-in", "", url.Values{
		"authorization": {hidden(t, page, "authorization")}, "username": {"alice"}, "password": {"pass-alice"},
	})
	if location := res.Header.Get("Location"); !strings.HasPrefix(location, "/tenant/authorize?") {
		t.Fatalf("redirect to %q, want the authorization request", location)
	}
	style := regexp.MustCompile(`href="([^"]*\.css)"`).FindStringSubmatch(page)[1]
	wantStatus(t, get(t, s, style, ""), http.StatusOK)
}

// TestPagesEscape puts markup wherever a client or a user can choose the text.
func TestPagesEscape(t *testing.T) {
	const evil = `<script>alert("x")</script>`
	f := newFake()
	f.client.Name = evil
	s := newServer(t, f, nil)
	cookie := f.signedIn(evil)
	v := authorization()
	v.Set("state", evil)
	for _, cookie := range []string{"", cookie} {
		page := get(t, s, "/authorize?"+v.Encode(), cookie).Body
		lacks(t, page, "<script>")
		holds(t, page, "&lt;script&gt;")
	}
	page := post(t, s, "/sign-in", "", url.Values{"username": {evil}, "password": {"x"}}).Body
	lacks(t, page, "<script>")
}

// TestPagesNeedNoScript checks that no page contains a script, or a style that CSP would block.
//
// Attack (rfc9700): 4.17 in-browser communication. Pages contain no script.
func TestPagesNeedNoScript(t *testing.T) {
	f := newFake()
	s := newServer(t, f, nil)
	cookie := f.signedIn("alice")
	for _, path := range []string{"/", "/sign-in", "/docs/rate-limits", "/consents", "/authorize", "/authorize?" + authorization().Encode()} {
		for _, c := range []string{"", cookie} {
			page := request{method: "GET", path: path, header: http.Header{"Cookie": {c}, "Accept": {"text/html"}}}.send(t, s).Body
			holds(t, page, `<meta name="viewport" content="width=device-width, initial-scale=1">`)
			lacks(t, page, "<script")
			lacks(t, page, " style=")
			if found := regexp.MustCompile(` on[a-z]+="`).FindString(page); found != "" {
				t.Fatalf("%q in %s", found, page)
			}
			lacks(t, page, "ZgotmplZ")
		}
	}
}

// TestFailurePagesSayWhatFailed checks that the heading names the failed action and the text gives
// the reason.
func TestFailurePagesSayWhatFailed(t *testing.T) {
	foreign := http.Header{"Origin": {"https://evil.example"}, "Sec-Fetch-Site": {"cross-site"}}
	for name, tt := range map[string]struct {
		request
		status        int
		heading, text string
	}{
		"bad authorization request":  {request{method: "GET", path: "/authorize"}, 400, "This request cannot be authorized", "unknown client"},
		"consent of another site":    {request{path: "/consent", header: foreign}, 403, "Your decision was not recorded", "another site"},
		"withdrawal of another site": {request{path: "/consents/withdraw", header: foreign}, 403, "The access was not withdrawn", "another site"},
		"sign-in of another site":    {request{path: "/sign-in", header: foreign}, 403, "Sign-in failed", "another site"},
		"sign-in without a store":    {request{path: "/sign-in", body: form("username", "alice", "password", "x")}, 500, "Sign-in failed", "failed to handle this request"},
		"sign-out of another site":   {request{path: "/sign-out", header: foreign}, 403, "Sign-out failed", "another site"},
		"page that takes no form":    {request{path: "/docs/rate-limits"}, 405, "This page is unavailable", "does not support this method"},
		"no page":                    {request{method: "GET", path: "/nowhere", header: http.Header{"Accept": {"text/html"}}}, 404, "Page not found", "does not exist"},
	} {
		for _, issuer := range []string{"http://id.example", "http://id.example/tenant"} {
			t.Run(name+" at "+issuer, func(t *testing.T) {
				f := newFake()
				f.failSignIn = errDisk
				s := newServer(t, f, func(o *httpapi.Options) { o.Issuer = issuer })
				tt.path = strings.TrimPrefix(issuer, "http://id.example") + tt.path
				res := tt.send(t, s)
				wantStatus(t, res, tt.status)
				holds(t, res.Body, "<h1>"+tt.heading+"</h1>")
				holds(t, res.Body, tt.text)
			})
		}
	}
}

func TestScopesInWords(t *testing.T) {
	tests := map[string]struct{ scope, text string }{
		"none":           {"", "<li>Know who you are (your user name)</li>"},
		"object, action": {"orders:read", "<li>Read orders<br>"},
		"action, object": {"write.shop.orders", "<li>Change shop orders<br>"},
		"action alone":   {"read", "<li>Read your data<br>"},
		"other":          {"profile", "<li>Use “profile”</li>"},
		"punctuation":    {"::", "<li>Use “::”</li>"},
		"configured":     {"pay", "<li>Spend your money<br>"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			s := newServer(t, f, func(o *httpapi.Options) { o.ScopeTexts = map[string]string{"pay": "Spend your money"} })
			v := authorization()
			v.Set("scope", tt.scope)
			res := get(t, s, "/authorize?"+v.Encode(), f.signedIn("alice"))
			wantStatus(t, res, http.StatusOK)
			holds(t, res.Body, tt.text)
		})
	}
}
