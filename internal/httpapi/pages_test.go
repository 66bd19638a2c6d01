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

// TestPagesEscape shows markup wherever somebody else chose the text.
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

// TestPagesNeedNoScript: no page holds one, nor a style that CSP would block.
func TestPagesNeedNoScript(t *testing.T) {
	f := newFake()
	s := newServer(t, f, nil)
	cookie := f.signedIn("alice")
	for _, path := range []string{"/", "/sign-in", "/docs/rate-limits", "/authorize", "/authorize?" + authorization().Encode()} {
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
