package httpapi_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"oauth-server/internal/check"
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
