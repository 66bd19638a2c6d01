package httpapi_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"oauth-server/internal/httpapi"
)

func TestIssuerPath(t *testing.T) {
	f := newFake()
	s := newServer(t, f, func(o *httpapi.Options) { o.Issuer = "http://id.example/tenant" })
	page := get(t, s, "/tenant/authorize?"+authorization().Encode(), "").Body
	require.Contains(t, page, `action="/tenant/sign-in"`)
	res := post(t, s, "/tenant/sign-in", "", url.Values{
		"authorization": {hidden(t, page, "authorization")}, "username": {"alice"}, "password": {"pass-alice"},
	})
	require.True(t, strings.HasPrefix(res.Header.Get("Location"), "/tenant/authorize?"))
	style := regexp.MustCompile(`href="([^"]*\.css)"`).FindStringSubmatch(page)[1]
	require.Equal(t, http.StatusOK, get(t, s, style, "").StatusCode)
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
		require.NotContains(t, page, "<script>")
		require.Contains(t, page, "&lt;script&gt;")
	}
	page := post(t, s, "/sign-in", "", url.Values{"username": {evil}, "password": {"x"}}).Body
	require.NotContains(t, page, "<script>")
}

// TestPagesNeedNoScript: no page holds one, nor a style that CSP would block.
func TestPagesNeedNoScript(t *testing.T) {
	f := newFake()
	s := newServer(t, f, nil)
	cookie := f.signedIn("alice")
	for _, path := range []string{"/", "/sign-in", "/docs/rate-limits", "/authorize", "/authorize?" + authorization().Encode()} {
		for _, c := range []string{"", cookie} {
			page := request{method: "GET", path: path, header: http.Header{"Cookie": {c}, "Accept": {"text/html"}}}.send(t, s).Body
			require.Contains(t, page, `<meta name="viewport" content="width=device-width, initial-scale=1">`)
			require.NotContains(t, page, "<script")
			require.NotContains(t, page, " style=")
			require.NotRegexp(t, ` on[a-z]+="`, page)
			require.NotContains(t, page, "ZgotmplZ")
		}
	}
}
