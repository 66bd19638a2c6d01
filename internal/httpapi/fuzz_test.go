package httpapi_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/httpapi"
)

// wantAnswer checks the properties of every answer of the token endpoint.
func wantAnswer(t *testing.T, res *reply) {
	t.Helper()
	if res.StatusCode >= http.StatusInternalServerError {
		t.Fatalf("status %d: %s", res.StatusCode, res.Body)
	}
	wantHeader(t, res.Header, "Content-Type", "application/json")
	wantHeader(t, res.Header, "Cache-Control", "no-store")
	var doc map[string]any
	check.OK(t, json.Unmarshal([]byte(res.Body), &doc))
	if res.StatusCode != http.StatusOK {
		if _, isText := doc["error"].(string); !isText {
			t.Fatalf("error is %v, want a string", doc["error"])
		}
		description, _ := doc["error_description"].(string)
		for _, r := range description {
			if r < 0x20 || r > 0x7e || r == '"' || r == '\\' {
				t.Fatalf("%q in an error_description", r)
			}
		}
	}
	check.Equal(t, "has WWW-Authenticate", res.Header.Get("WWW-Authenticate") != "", res.StatusCode == http.StatusUnauthorized)
}

func notEmpty(values []string) (out []string) {
	for _, v := range values {
		if v != "" {
			out = append(out, v)
		}
	}
	return out
}

// Attack (input): Hostile headers. Only well-formed values have an effect. Also
// guard.FuzzBearer, httpapi.FuzzCookie, httpapi.FuzzRequestID, tracing.FuzzTraceparent.
func FuzzBasicHeader(f *testing.F) {
	for _, s := range []string{
		basic("shop", secretOf)[0], basic("%73hop", "s3cret")[0], "Basic", "basic  " + base64.StdEncoding.EncodeToString([]byte("a:b")),
		"Basic Og==", "Bearer x", "", "Basic =", basic("shop", "s3cret\x00")[0], basic("%", "%")[0],
	} {
		f.Add(s)
	}
	s := newServer(f, newFake(), nil)
	f.Fuzz(func(t *testing.T, header string) {
		res := request{path: "/token", body: "grant_type=client_credentials", header: http.Header{"Authorization": {header}}}.
			send(t, s)
		wantAnswer(t, res)
		if res.StatusCode == http.StatusOK {
			_, b64, _ := strings.Cut(header, " ")
			raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(b64))
			check.OK(t, err)
			plain, err := url.QueryUnescape(string(raw))
			check.OK(t, err)
			check.Equal(t, "credentials", plain, "shop:"+secretOf)
		}
	})
}

// Attack (rfc9700): 2.1, 4.11.2 open redirector. Redirects lead to registered URIs only. Other
// errors are shown on a page. Also e2e.TestBadAuthorizationRequests.
func FuzzAuthorizeQuery(f *testing.F) {
	f.Add(authorization().Encode(), true)
	f.Add(authorization().Encode()+"&redirect_uri=https://evil.example", false)
	f.Add("client_id=shop&redirect_uri=https://app.example.evil/cb&response_type=code", true)
	f.Add("client_id=shop&redirect_uri=com.example.app:/cb&response_type=token&state=%0d%0aLocation:%20x", true)
	f.Add("response_mode=form_post&"+authorization().Encode()+"&state=2", false)
	f.Add("%zz&&=;", false)
	fake := newFake()
	s := newServer(f, fake, nil)
	f.Fuzz(func(t *testing.T, query string, signedIn bool) {
		u := &url.URL{Path: "/authorize", RawQuery: query}
		if _, err := url.ParseRequestURI(u.String()); err != nil || strings.ContainsAny(query, " \x00\r\n\t\x7f") {
			return // net/http would not accept this request line
		}
		cookie := ""
		if signedIn {
			cookie = fake.signedIn("alice")
		}
		res := get(t, s, u.String(), cookie)
		if res.StatusCode >= http.StatusInternalServerError {
			t.Fatalf("status %d: %s", res.StatusCode, res.Body)
		}
		location := res.Header.Get("Location")
		if location == "" {
			wantHeader(t, res.Header, "Content-Type", "text/html; charset=utf-8")
			return
		}
		wantStatus(t, res, http.StatusSeeOther)
		registered := false
		for _, target := range fake.client.RedirectURIs {
			registered = registered || strings.HasPrefix(location, target+"&") || strings.HasPrefix(location, target+"?")
		}
		if !registered {
			t.Fatalf("%v", location)
		}
		lacks(t, location, "code=")
		holds(t, location, "iss=")
	})
}

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

// behindProxy trusts the peer of the tests' requests and 10.0.0.0/8.
func behindProxy(o *httpapi.Options) {
	o.Addresses.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("10.0.0.0/8")}
}

// FuzzRequestID checks that a trusted proxy's value is used as the ID only if it fits a log line.
func FuzzRequestID(f *testing.F) {
	for _, seed := range []string{"", "abc-123_x.y", "a b", "a\nlevel=ERROR", strings.Repeat("x", 65), "ä", "\x00"} {
		f.Add(seed)
	}
	fit := regexp.MustCompile(`\A[A-Za-z0-9._-]{1,64}\z`)
	open, proxied := newServer(f, newFake(), nil), newServer(f, newFake(), behindProxy)
	f.Fuzz(func(t *testing.T, header string) {
		for name, s := range map[string]*httpapi.Server{"open": open, "proxied": proxied} {
			r := request{method: http.MethodGet, path: "/healthz", header: http.Header{"X-Request-Id": {header}}}
			got := r.send(t, s).Header.Get("X-Request-Id")
			if !fit.MatchString(got) {
				t.Errorf("%s: the ID is %q", name, got)
			}
			check.Equal(t, name+": the ID is the header's", got == header, name == "proxied" && fit.MatchString(header))
		}
	})
}

// FuzzCookie checks that only the value of a session signs in.
func FuzzCookie(f *testing.F) {
	for _, seed := range []string{"", "oauth_session=cookie-alice", "oauth_session=x; oauth_session=cookie-alice", "a=b; oauth_session=\"cookie-alice\"", "oauth_session"} {
		f.Add(seed)
	}
	fake := newFake()
	s := newServer(f, fake, nil)
	fake.signedIn("alice")
	f.Fuzz(func(t *testing.T, header string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/authorize?"+authorization().Encode(), http.NoBody)
		r.Header["Cookie"] = []string{header}
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, r)
		check.Equal(t, "status", rec.Code, http.StatusOK)
		if !strings.Contains(header, "oauth_session=cookie-alice") && !strings.Contains(header, `oauth_session="cookie-alice"`) {
			lacks(t, rec.Body.String(), `value="allow"`)
		}
	})
}
