package httpapi_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/oautherr"
)

// wantPage checks the headers that every page carries.
func wantPage(tb testing.TB, res *reply, formAction string) {
	tb.Helper()
	h := res.Header
	wantHeader(tb, h, "Content-Type", "text/html; charset=utf-8")
	wantHeader(tb, h, "Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; "+
		"frame-ancestors 'none'; form-action "+formAction)
	wantHeader(tb, h, "X-Frame-Options", "DENY")
	wantHeader(tb, h, "Referrer-Policy", "same-origin")
	wantHeader(tb, h, "X-Content-Type-Options", "nosniff")
	wantHeader(tb, h, "Cache-Control", "no-store")
}

func get(tb testing.TB, s http.Handler, path, cookie string) *reply {
	tb.Helper()
	return request{method: "GET", path: path, header: http.Header{"Cookie": {cookie}}}.send(tb, s)
}

func post(tb testing.TB, s http.Handler, path, cookie string, v url.Values) *reply {
	tb.Helper()
	return request{path: path, body: v.Encode(), header: http.Header{"Cookie": {cookie}}}.send(tb, s)
}

// hidden returns the value of a hidden field of a page.
func hidden(tb testing.TB, page, name string) string {
	tb.Helper()
	m := regexp.MustCompile(`name="` + name + `" value="([^"]*)"`).FindStringSubmatch(page)
	if m == nil {
		tb.Fatalf("no hidden field %s in %s", name, page)
	}
	return html.UnescapeString(m[1])
}

// wantRedirect checks an authorization response and returns its parameters.
func wantRedirect(tb testing.TB, res *reply, target string) url.Values {
	tb.Helper()
	wantStatus(tb, res, http.StatusSeeOther)
	wantHeader(tb, res.Header, "Cache-Control", "no-store")
	location := res.Header.Get("Location")
	if !strings.HasPrefix(location, target) {
		tb.Fatalf("redirect to %q, want %q", location, target)
	}
	u, err := url.Parse(location)
	check.OK(tb, err)
	check.Equal(tb, "iss", u.Query().Get("iss"), "http://id.example")
	return u.Query()
}

// TestWayThroughThePages goes from /authorize to the code without a browser.
//
// Attack (rfc9700): 4.12 redirect 307. Redirects after a form are 303.
func TestWayThroughThePages(t *testing.T) {
	f := newFake()
	s := newServer(t, f, nil)
	start := "/authorize?" + authorization().Encode()

	res := get(t, s, start, "")
	page := res.Body
	wantStatus(t, res, http.StatusOK)
	wantPage(t, res, "'self' https://app.example https:")
	holds(t, page, "The Shop")

	res = post(t, s, "/sign-in", "", url.Values{
		"authorization": {hidden(t, page, "authorization")}, "username": {" alice "}, "password": {"wrong <b>"},
	})
	page = res.Body
	wantStatus(t, res, http.StatusForbidden)
	wantPage(t, res, "'self' https://app.example https:")
	holds(t, page, `role="alert"`)
	holds(t, page, `value="alice"`)
	lacks(t, page, "wrong")
	wantHeader(t, res.Header, "Set-Cookie", "")

	res = post(t, s, "/sign-in", "", url.Values{
		"authorization": {hidden(t, page, "authorization")}, "username": {"alice"}, "password": {"pass-alice"},
	})
	wantStatus(t, res, http.StatusSeeOther)
	back, err := url.Parse(res.Header.Get("Location"))
	check.OK(t, err)
	check.Equal(t, "path", back.Path, "/authorize")
	check.Equal(t, "query", back.Query(), authorization())
	cookie := res.Header.Get("Set-Cookie")
	check.Equal(t, "cookie", cookie, "oauth_session=cookie-alice; Path=/; Expires=Sat, 02 Jan 2100 03:04:05 GMT; HttpOnly; SameSite=Lax")
	cookie, _, _ = strings.Cut(cookie, ";")

	res = get(t, s, res.Header.Get("Location"), cookie)
	page = res.Body
	wantStatus(t, res, http.StatusOK)
	wantPage(t, res, "'self' https://app.example https:")
	for _, text := range []string{"The Shop", "alice", "Read orders", "app.example"} {
		holds(t, page, text)
	}

	res = post(t, s, "/consent", cookie, url.Values{
		"authorization": {hidden(t, page, "authorization")}, "binding": {hidden(t, page, "binding")}, "decision": {"allow"},
	})
	q := wantRedirect(t, res, appTarget+"&")
	check.Equal(t, "code", q.Get("code"), "the-code")
	check.Equal(t, "state", q.Get("state"), "st&ate")
	check.Equal(t, "approved", f.approved, []string{"alice"})
}

func consentPageOf(t *testing.T, s http.Handler, cookie string) url.Values {
	t.Helper()
	page := get(t, s, "/authorize?"+authorization().Encode(), cookie).Body
	return url.Values{"authorization": {hidden(t, page, "authorization")}, "binding": {hidden(t, page, "binding")}, "decision": {"allow"}}
}

// TestDeny also denies on an old page, which needs no new one, because a denial grants nothing.
func TestDeny(t *testing.T) {
	for _, fail := range []error{nil, grants.ErrConsentPage} {
		f := newFake()
		f.failApprove = fail
		s := newServer(t, f, nil)
		cookie := f.signedIn("alice")
		v := consentPageOf(t, s, cookie)
		v.Set("decision", "deny")
		q := wantRedirect(t, post(t, s, "/consent", cookie, v), appTarget+"&")
		check.Equal(t, "error", q.Get("error"), "access_denied")
		check.Equal(t, "state", q.Get("state"), "st&ate")
		check.Equal(t, "code", q.Get("code"), "")
		check.Equal(t, "approved", f.approved, nil)
	}
}

// TestConsentThatDoesNotCount posts consents that no user gave.
//
// Attack (consent): A forged consent. The answer must come from a page for the same session and
// request. Also grants.FuzzConsentPage.
func TestConsentThatDoesNotCount(t *testing.T) {
	f := newFake()
	s := newServer(t, f, nil)
	alice, bob := f.signedIn("alice"), f.signedIn("bob")
	good := consentPageOf(t, s, alice)
	with := func(edit func(url.Values)) url.Values {
		v := url.Values{}
		for k, x := range good {
			v[k] = x
		}
		edit(v)
		return v
	}
	other := authorization()
	other.Set("scope", "orders:delete")
	tests := map[string]struct {
		cookie string
		form   url.Values
		status int
	}{
		"page of another user":    {bob, good, http.StatusForbidden},
		"page of another request": {alice, with(func(v url.Values) { v.Set("authorization", other.Encode()) }), http.StatusForbidden},
		"no binding":              {alice, with(func(v url.Values) { v.Del("binding") }), http.StatusForbidden},
		"made-up binding":         {alice, with(func(v url.Values) { v.Set("binding", "x") }), http.StatusForbidden},
		"signed out":              {"", good, http.StatusSeeOther},
		"unknown session":         {"oauth_session=nonsense", good, http.StatusSeeOther},
		"no decision":             {alice, with(func(v url.Values) { v.Del("decision") }), http.StatusBadRequest},
		"odd decision":            {alice, with(func(v url.Values) { v.Set("decision", "perhaps") }), http.StatusBadRequest},
		"no authorization":        {alice, with(func(v url.Values) { v.Del("authorization") }), http.StatusBadRequest},
		"repeated decision":       {alice, with(func(v url.Values) { v["decision"] = []string{"deny", "allow"} }), http.StatusBadRequest},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			res := post(t, s, "/consent", tt.cookie, tt.form)
			wantStatus(t, res, tt.status)
			if location := res.Header.Get("Location"); location != "" {
				if !strings.HasPrefix(location, "/authorize?") {
					t.Fatalf("redirect to %q, want the authorization request", location)
				}
			}
			check.Equal(t, "approved", f.approved, nil)
		})
	}
}

func TestApprovalThatFails(t *testing.T) {
	f := newFake()
	s := newServer(t, f, nil)
	cookie := f.signedIn("alice")
	v := consentPageOf(t, s, cookie)
	f.failApprove = errDisk
	q := wantRedirect(t, post(t, s, "/consent", cookie, v), appTarget+"&")
	check.Equal(t, "error", q.Get("error"), "server_error")
	lacks(t, q.Get("error_description"), "fire")
}

// TestBadAuthorization checks that errors about an untrusted client or redirect URI are shown and
// never redirected. Other errors are redirected to the client.
func TestBadAuthorization(t *testing.T) {
	with := func(edit func(url.Values)) string {
		v := authorization()
		edit(v)
		return v.Encode()
	}
	good := authorization().Encode()
	tests := map[string]struct {
		query    string
		redirect oautherr.Code // empty: a page
		state    string
	}{
		"nothing":                {query: ""},
		"unknown client":         {query: with(func(v url.Values) { v.Set("client_id", "x") })},
		"no client":              {query: with(func(v url.Values) { v.Del("client_id") })},
		"unregistered redirect":  {query: with(func(v url.Values) { v.Set("redirect_uri", "https://evil.example/") })},
		"redirect prefix":        {query: with(func(v url.Values) { v.Set("redirect_uri", appTarget+"x") })},
		"repeated client":        {query: good + "&client_id=shop"},
		"repeated redirect":      {query: good + "&redirect_uri=https://evil.example"},
		"redirect repeated last": {query: good + "&scope=x&redirect_uri=https://evil.example"},
		"bad encoding":           {query: good + "&x=%zz"},
		"invalid UTF-8":          {query: good + "&x=%ff"},
		"NUL":                    {query: good + "&x=%00"},
		"too long":               {query: good + "&x=" + strings.Repeat("x", 20000)},
		"state too long":         {query: with(func(v url.Values) { v.Set("state", strings.Repeat("x", 9000)) })},
		"too many":               {query: good + strings.Repeat("&x=1", 100)},

		"repeated scope":         {good + "&scope=b", oautherr.InvalidRequest, "st&ate"},
		"repeated state":         {good + "&state=b", oautherr.InvalidRequest, ""},
		"response_mode":          {good + "&response_mode=fragment", oautherr.InvalidRequest, "st&ate"},
		"response_type":          {with(func(v url.Values) { v.Set("response_type", "token") }), oautherr.UnsupportedResponseType, "st&ate"},
		"response_type and mode": {with(func(v url.Values) { v.Set("response_type", "token") }) + "&response_mode=fragment", oautherr.InvalidRequest, "st&ate"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			for who, cookie := range map[string]string{"stranger": "", "alice": f.signedIn("alice")} {
				res := get(t, newServer(t, f, nil), "/authorize?"+tt.query, cookie)
				if tt.redirect == "" {
					wantStatus(t, res, http.StatusBadRequest)
					wantHeader(t, res.Header, "Location", "")
					wantPage(t, res, "'self'")
					holds(t, res.Body, res.Header.Get("X-Request-Id"))
					continue
				}
				q := wantRedirect(t, res, appTarget+"&")
				check.Equal(t, who, q.Get("error"), string(tt.redirect))
				check.Equal(t, "state", q.Get("state"), tt.state)
				lacks(t, q.Get("error_description"), `"`)
			}
		})
	}
}

// TestUnknownParametersAreIgnored covers RFC 6749 3.1 and OpenID Connect's prompt.
func TestUnknownParametersAreIgnored(t *testing.T) {
	res := get(t, newServer(t, newFake(), nil), "/authorize?"+authorization().Encode()+"&prompt=none&nonce=n&response_mode=query", "")
	wantStatus(t, res, http.StatusOK)
}

func TestAuthorizeByPost(t *testing.T) {
	s := newServer(t, newFake(), nil)
	// From the client's site, because the request must work across origins.
	res := request{path: "/authorize", body: authorization().Encode(), header: http.Header{
		"Origin": {"https://app.example"}, "Sec-Fetch-Site": {"cross-site"},
	}}.send(t, s)
	wantStatus(t, res, http.StatusSeeOther)
	u, err := url.Parse(res.Header.Get("Location"))
	check.OK(t, err)
	check.Equal(t, "path", u.Path, "/authorize")
	check.Equal(t, "query", u.Query(), authorization())

	res = request{path: "/authorize", body: "{}", header: http.Header{"Content-Type": {"application/json"}}}.send(t, s)
	wantStatus(t, res, http.StatusBadRequest)
	wantPage(t, res, "'self'")
}

func TestAuthorizeAnswersScriptsInJSON(t *testing.T) {
	res := request{method: "GET", path: "/authorize", header: http.Header{"Accept": {"application/json"}}}.send(t, newServer(t, newFake(), nil))
	wantOAuthError(t, res, http.StatusBadRequest, oautherr.InvalidRequest)
}

func TestOurTroubleOnPages(t *testing.T) {
	for name, edit := range map[string]func(*fake){
		"authorize": func(f *fake) { f.failAuthorize = errDisk },
		"session":   func(f *fake) { f.failSession = errDisk },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			cookie := f.signedIn("alice")
			edit(f)
			res := get(t, newServer(t, f, nil), "/authorize?"+authorization().Encode(), cookie)
			wantStatus(t, res, http.StatusInternalServerError)
			wantPage(t, res, "'self'")
			lacks(t, res.Body, "fire")
		})
	}
}

func TestTargets(t *testing.T) {
	for target, want := range map[string]struct{ source, words string }{
		appTarget:              {"https://app.example https:", "app.example"},
		"com.example.app:/cb":  {"com.example.app:", "the app com.example.app on this device"},
		"http://[::1]:7777/cb": {"http: https: http://127.0.0.1:* http://localhost:*", "a program on this device ([::1]:7777)"},
	} {
		t.Run(target, func(t *testing.T) {
			f := newFake()
			s := newServer(t, f, nil)
			cookie := f.signedIn("alice")
			v := authorization()
			v.Set("redirect_uri", target)
			res := get(t, s, "/authorize?"+v.Encode(), cookie)
			wantPage(t, res, "'self' "+want.source)
			page := res.Body
			holds(t, page, want.words)
			sep := "?"
			if strings.Contains(target, "?") {
				sep = "&"
			}
			wantRedirect(t, post(t, s, "/consent", cookie, url.Values{
				"authorization": {hidden(t, page, "authorization")}, "binding": {hidden(t, page, "binding")}, "decision": {"allow"},
			}), target+sep+"code=the-code&")
		})
	}
}
