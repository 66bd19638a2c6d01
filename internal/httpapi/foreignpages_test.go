package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/httpapi"
	"oauth-server/internal/limiter/attempts"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
)

const evil = "https://evil.example"

// spa is a browser app. legacy is a client with the password grant.
func spa() *clientcfg.Client {
	return &clientcfg.Client{
		ID: "spa", Public: true, Grants: []clientcfg.Grant{clientcfg.AuthorizationCode, clientcfg.RefreshToken},
		RedirectURIs: []string{"https://app.example/cb"},
	}
}

func legacy() *clientcfg.Client {
	return &clientcfg.Client{
		ID: "legacy", Grants: []clientcfg.Grant{clientcfg.Password, clientcfg.AuthorizationCode}, SecretDigest: secret.DigestOf(secretOf),
		RedirectURIs: []string{"https://portal.example/cb"},
	}
}

// send posts a form as a browser does for a page of that origin. An empty origin means no page.
func send(t *testing.T, address, origin, site string, form url.Values) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(form.Encode()))
	check.OK(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for name, value := range map[string]string{"Origin": origin, "Sec-Fetch-Site": site} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	res, err := http.DefaultClient.Do(req)
	check.OK(t, err)
	check.OK(t, res.Body.Close())
	if res.Header.Get("Access-Control-Allow-Origin") == "" && origin != "" && !strings.HasSuffix(address, "/introspect") {
		t.Errorf("%s: a page of %s cannot read the answer", address, origin)
	}
	return res.StatusCode
}

// TestForeignPagesLockOutNobody checks that requests that pages of other sites make a browser send
// are counted separately, so clients and apps at the browser's address are not affected.
func TestForeignPagesLockOutNobody(t *testing.T) {
	few := func(o *grants.Options, _ *httpapi.Options) {
		one := ratelimit.NewLimit("few", 3, time.Minute)
		l := attempts.Limits{PerAddress: one, PerName: one}
		o.ClientFailures, o.InvalidGrants, o.SignIn.Failures, o.Revocations = l, l, l, one
	}
	form := func(pairs ...string) url.Values {
		v := url.Values{}
		for i := 0; i < len(pairs); i += 2 {
			v.Set(pairs[i], pairs[i+1])
		}
		return v
	}
	wrongSecret := form("grant_type", "client_credentials", "client_id", "daemon", "client_secret", "wrong")
	wrongCode := form("grant_type", "authorization_code", "client_id", "spa", "code", "x")
	wrongPassword := form("grant_type", "password", "client_id", "legacy", "client_secret", secretOf, "username", "alice", "password", "wrong")
	revocation := form("client_id", "spa", "token", "x")
	inspection := form("client_id", "daemon", "client_secret", "wrong", "token", "x")
	for name, tc := range map[string]struct {
		path          string
		form          url.Values
		origin, site  string
		first, beyond int // answers to the page
		others        int // answers to others at the address
	}{
		"client, by origin":       {"/token", wrongSecret, evil, "", 401, 429, 401},
		"client, by site":         {"/token", wrongSecret, "", "cross-site", 401, 429, 401},
		"client, no origin":       {"/token", wrongSecret, "null", "cross-site", 401, 429, 401},
		"client, of a sibling":    {"/token", wrongSecret, evil, "same-site", 401, 429, 401},
		"client, of another port": {"/token", wrongSecret, "http://127.0.0.1:1", "", 401, 429, 401},
		"client, by inspection":   {"/introspect", inspection, evil, "cross-site", 401, 429, 401},
		"codes":                   {"/token", wrongCode, evil, "cross-site", 400, 429, 400},
		"the app itself":          {"/token", wrongCode, "https://app.example", "cross-site", 400, 429, 429},
		"revocations":             {"/revoke", revocation, evil, "cross-site", 200, 429, 200},
		"passwords":               {"/token", wrongPassword, evil, "cross-site", 400, 400, 400},
		"passwords, of a sibling": {"/token", wrongPassword, evil, "same-site", 400, 429, 400},
	} {
		t.Run(name, func(t *testing.T) {
			s := newWorld(t, testworld.Clients{"daemon": daemon(), "spa": spa(), "legacy": legacy()}, few)
			for i := range 20 {
				want := tc.first
				if i >= 3 {
					want = tc.beyond
				}
				check.Equal(t, "to the page", send(t, s.URL+tc.path, tc.origin, tc.site, tc.form), want)
			}
			check.Equal(t, "to others", send(t, s.URL+tc.path, "", "", tc.form), tc.others)
		})
	}
}

// TestPasswordsOfForeignPages checks that passwords from pages of other sites are refused without
// checking them. Passwords from a page of the client, of the same site and of this server are
// checked.
func TestPasswordsOfForeignPages(t *testing.T) {
	s := newWorld(t, testworld.Clients{"legacy": legacy()})
	form := url.Values{
		"grant_type": {"password"}, "client_id": {"legacy"}, "client_secret": {secretOf}, "username": {"alice"}, "password": {password},
	}
	for name, tc := range map[string]struct {
		origin, site string
		want         int
	}{
		"no page":                      {"", "", 200},
		"typed":                        {"", "none", 200},
		"of this server":               {s.URL, "same-origin", 200},
		"of this server, old browser":  {s.URL, "", 200},
		"of the same site":             {"https://sibling.example", "same-site", 200},
		"of the client":                {"https://portal.example", "cross-site", 200},
		"of the client, old browser":   {"https://portal.example", "", 200},
		"foreign":                      {evil, "cross-site", 400},
		"foreign, old browser":         {evil, "", 400},
		"foreign, without an origin":   {"", "cross-site", 400},
		"in a sandbox":                 {"null", "cross-site", 400},
		"of the client, by plain http": {"http://portal.example", "cross-site", 400},
		"of the client, another port":  {"https://portal.example:8443", "cross-site", 400},
		"looks like the client":        {"https://portal.example.evil.example", "cross-site", 400},
	} {
		check.Equal(t, name, send(t, s.URL+"/token", tc.origin, tc.site, form), tc.want)
	}
}

// TestOwnAddressBehindAProxy checks that a page of the issuer does not count as another site,
// whatever Host a proxy sends.
func TestOwnAddressBehindAProxy(t *testing.T) {
	for origin, want := range map[string]grants.Page{"http://id.example": {}, "http://backend:8080": {}, evil: {Origin: evil}} {
		f := newFake()
		r := httptest.NewRequest(http.MethodPost, "/token", strings.NewReader("grant_type=client_credentials&client_id=shop&client_secret="+secretOf))
		r.Host = "backend:8080"
		r.Header.Set("Content-Type", formType)
		r.Header.Set("Origin", origin)
		newServer(t, f, nil).ServeHTTP(httptest.NewRecorder(), r)
		check.Equal(t, origin, f.token.Credentials, grants.Credentials{Method: grants.AuthPost, ClientID: "shop", Secret: secretOf, Page: want})
	}
}
