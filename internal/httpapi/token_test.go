package httpapi_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/httpapi"
)

func TestTokenAnswer(t *testing.T) {
	res := request{path: "/token", body: form("grant_type", "client_credentials", "client_id", "shop", "client_secret", secretOf)}.
		send(t, newServer(t, newFake(), nil))
	wantStatus(t, res, http.StatusOK)
	wantHeader(t, res.Header, "Content-Type", "application/json")
	wantHeader(t, res.Header, "Cache-Control", "no-store")
	wantHeader(t, res.Header, "Pragma", "no-cache")
	sameJSON(t, res.Body, `{"access_token":"a.b.c","token_type":"Bearer","expires_in":3600,"refresh_token":"r","scope":"read write"}`)
}

// TestTokenReading checks the request that the grants receive.
func TestTokenReading(t *testing.T) {
	everything := form("grant_type", "g", "scope", "a b", "code", "c", "redirect_uri", "https://x/?a=b&c=d",
		"code_verifier", "v", "refresh_token", "r", "username", "jürgen", "password", " p+w ")
	want := grants.TokenRequest{
		Remote: netip.MustParseAddr("192.0.2.1"), GrantType: "g", Scope: "a b", Code: "c", RedirectURI: "https://x/?a=b&c=d",
		CodeVerifier: "v", RefreshToken: "r", Username: "jürgen", Password: " p+w ",
	}
	tests := map[string]struct {
		request
		credentials grants.Credentials
	}{
		"Basic": {
			request{header: http.Header{"Authorization": basic("shop", "s3cret")}},
			grants.Credentials{Method: grants.AuthBasic, ClientID: "shop", Secret: "s3cret"},
		},
		"Basic form-encoded": {
			request{header: http.Header{"Authorization": basic("my%2Dshop", "a%3Ab+c%2B%C3%BC")}},
			grants.Credentials{Method: grants.AuthBasic, ClientID: "my-shop", Secret: "a:b c+ü", RawSecret: "a%3Ab+c%2B%C3%BC"},
		},
		"Basic not form-encoded": {
			request{header: http.Header{"Authorization": basic("shop", "a+b/c=")}},
			grants.Credentials{Method: grants.AuthBasic, ClientID: "shop", Secret: "a b/c=", RawSecret: "a+b/c="},
		},
		"Basic with a percent sign": {
			request{header: http.Header{"Authorization": basic("shop", "100%zz+")}},
			grants.Credentials{Method: grants.AuthBasic, ClientID: "shop", Secret: "100%zz+"},
		},
		"Basic that decodes to no text": {
			request{header: http.Header{"Authorization": basic("shop", "a%ff%00")}},
			grants.Credentials{Method: grants.AuthBasic, ClientID: "shop", Secret: "a%ff%00"},
		},
		"Basic id with a percent sign": {
			request{header: http.Header{"Authorization": basic("100%", "x")}},
			grants.Credentials{Method: grants.AuthBasic, ClientID: "100%", Secret: "x"},
		},
		"Basic id with a plus sign": {
			request{header: http.Header{"Authorization": basic("a+b", "x")}},
			grants.Credentials{Method: grants.AuthBasic, ClientID: "a b", Secret: "x"},
		},
		"Basic of nobody": {
			request{body: "&client_id=shop&client_secret=x", header: http.Header{"Authorization": basic("", "")}},
			grants.Credentials{Method: grants.AuthPost, ClientID: "shop", Secret: "x"},
		},
		"Basic of nobody, and a public client": {
			request{body: "&client_id=app", header: http.Header{"Authorization": {"basic  Og"}}},
			grants.Credentials{Method: grants.AuthNone, ClientID: "app"},
		},
		"several resources": {
			request{body: "&client_id=app&resource=a&resource=b&audience=c&audience=c"},
			grants.Credentials{Method: grants.AuthNone, ClientID: "app"},
		},
		"attributes of the type": {
			request{body: "&client_id=app", header: http.Header{"Content-Type": {`application/x-www-form-urlencoded ; charset=UTF-8; foo=bar; x="y`}}},
			grants.Credentials{Method: grants.AuthNone, ClientID: "app"},
		},
		"Basic with colons": {
			request{header: http.Header{"Authorization": basic("shop", "a:b")}},
			grants.Credentials{Method: grants.AuthBasic, ClientID: "shop", Secret: "a:b"},
		},
		"Basic in odd case": {
			request{header: http.Header{"Authorization": {strings.Replace(basic("shop", "x")[0], "Basic ", "bAsIc  ", 1)}}},
			grants.Credentials{Method: grants.AuthBasic, ClientID: "shop", Secret: "x"},
		},
		"Basic and the same id": {
			request{body: "&client_id=shop", header: http.Header{"Authorization": basic("shop", "x")}},
			grants.Credentials{Method: grants.AuthBasic, ClientID: "shop", Secret: "x"},
		},
		"Basic of a public client": {
			request{header: http.Header{"Authorization": basic("app", "")}},
			grants.Credentials{Method: grants.AuthNone, ClientID: "app"},
		},
		"body": {
			request{body: "&client_id=shop&client_secret=x%20y"},
			grants.Credentials{Method: grants.AuthPost, ClientID: "shop", Secret: "x y"},
		},
		"public": {
			request{body: "&client_id=app"},
			grants.Credentials{Method: grants.AuthNone, ClientID: "app"},
		},
		"empty values are absent": {
			request{body: "&client_id=app&client_secret=&client_id=&foo"},
			grants.Credentials{Method: grants.AuthNone, ClientID: "app"},
		},
		"charset": {
			request{body: "&client_id=app", header: http.Header{"Content-Type": {"application/x-www-form-urlencoded; charset=UTF-8"}}},
			grants.Credentials{Method: grants.AuthNone, ClientID: "app"},
		},
		"content type in odd case": {
			request{body: "&client_id=app", header: http.Header{"Content-Type": {"Application/X-WWW-Form-urlencoded;charset=iso-8859-1"}}},
			grants.Credentials{Method: grants.AuthNone, ClientID: "app"},
		},
		"chunked": {
			request{body: "&client_id=app", chunked: true},
			grants.Credentials{Method: grants.AuthNone, ClientID: "app"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			tt.path, tt.body = "/token", everything+tt.body
			tt.send(t, newServer(t, f, nil))
			want := want
			want.Credentials = tt.credentials
			check.Equal(t, "request", f.token, want)
		})
	}
}

func TestIntrospectAnswer(t *testing.T) {
	s := newServer(t, newFake(), nil)
	ask := func(token string) string {
		res := request{path: "/introspect", body: form("token", token, "client_id", "shop", "client_secret", secretOf)}.send(t, s)
		wantStatus(t, res, http.StatusOK)
		wantHeader(t, res.Header, "Content-Type", "application/json")
		wantHeader(t, res.Header, "Cache-Control", "no-store")
		return res.Body
	}
	sameJSON(t, ask("good"), `{"active":true,"scope":"read","client_id":"shop","username":"alice","token_type":"Bearer",
		"exp":200,"iat":100,"sub":"alice","aud":["api"],"iss":"http://id.example","jti":"j1"}`)
	sameJSON(t, ask("bad"), `{"active":false}`)
}

func TestRevokeAnswer(t *testing.T) {
	f := newFake()
	res := request{path: "/revoke", body: form("token", "t", "token_type_hint", "refresh_token", "client_id", "shop", "client_secret", secretOf)}.
		send(t, newServer(t, f, nil))
	wantStatus(t, res, http.StatusOK)
	check.Equal(t, "body", res.Body, "")
	wantHeader(t, res.Header, "Cache-Control", "no-store")
	check.Equal(t, "token", f.query.Token, "t")
	check.Equal(t, "hint", f.query.Hint, "refresh_token")
}

func TestMetadata(t *testing.T) {
	tests := map[string]struct{ issuer, path, base string }{
		"root":           {"https://id.example", "/.well-known/oauth-authorization-server", "https://id.example"},
		"trailing slash": {"https://id.example/", "/.well-known/oauth-authorization-server", "https://id.example"},
		"path":           {"https://id.example/a/b", "/.well-known/oauth-authorization-server/a/b", "https://id.example/a/b"},
		"path below":     {"https://id.example/a/b", "/a/b/.well-known/oauth-authorization-server", "https://id.example/a/b"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, newFake(), func(o *httpapi.Options) { o.Issuer = tt.issuer })
			res := request{method: "GET", path: tt.path}.send(t, s)
			wantStatus(t, res, http.StatusOK)
			wantHeader(t, res.Header, "Content-Type", "application/json")
			var doc map[string]any
			check.OK(t, json.Unmarshal([]byte(res.Body), &doc))
			check.Equal[any](t, "issuer", doc["issuer"], tt.issuer)
			check.Equal[any](t, "code_challenge_methods_supported", doc["code_challenge_methods_supported"], []any{"S256"})
			check.Equal[any](t, "response_types_supported", doc["response_types_supported"], []any{"code"})
			check.Equal[any](t, "authorization_response_iss_parameter_supported", doc["authorization_response_iss_parameter_supported"], true)
			if list, isList := doc["grant_types_supported"].([]any); !isList || slices.Contains(list, any("password")) {
				t.Errorf("grant_types_supported is %v, want a list without password", doc["grant_types_supported"])
			}
			for field, path := range map[string]string{
				"token_endpoint": "/token", "authorization_endpoint": "/authorize", "jwks_uri": "/.well-known/jwks.json",
				"introspection_endpoint": "/introspect", "revocation_endpoint": "/revoke",
			} {
				check.Equal[any](t, field, doc[field], tt.base+path)
				local := strings.TrimPrefix(tt.base+path, "https://id.example")
				if res := (request{method: "GET", path: local}).send(t, s); res.StatusCode == http.StatusNotFound {
					t.Fatalf("there is nothing at %s", local)
				}
			}
		})
	}
}

func TestJWKS(t *testing.T) {
	res := request{method: "GET", path: "/.well-known/jwks.json"}.send(t, newServer(t, newFake(), nil))
	wantStatus(t, res, http.StatusOK)
	wantHeader(t, res.Header, "Content-Type", "application/json")
	sameJSON(t, res.Body, `{"keys":[]}`)
}

func TestNewRefuses(t *testing.T) {
	for name, issuer := range map[string]string{
		"empty": "", "relative": "/x", "no host": "https:///x", "ftp": "ftp://x", "query": "https://x/?a=b",
		"empty query": "https://x/?", "fragment": "https://x/#", "user": "https://me@x/", "parameter": "https://x/:a", "star": "https://x/*",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			_, err := httpapi.New(httpapi.Options{Issuer: issuer, Service: f, Keys: f})
			holds(t, fmt.Sprint(err), "issuer")
		})
	}
}

func TestEveryAnswerIsObserved(t *testing.T) {
	const good = "grant_type=client_credentials&client_id=shop&client_secret=" + secretOf
	tests := map[string]struct {
		method, target, form string
		want                 httpapi.Answer
	}{
		"token":             {http.MethodPost, "/token", good, httpapi.Answer{Route: "/token", Method: "POST", Status: 200, GrantType: "client_credentials"}},
		"token below path":  {http.MethodPost, "/oauth/token", good, httpapi.Answer{Route: "/token", Method: "POST", Status: 200, GrantType: "client_credentials"}},
		"no grant type":     {http.MethodPost, "/token", "client_id=shop", httpapi.Answer{Route: "/token", Method: "POST", Status: 400, Error: "invalid_request"}},
		"wrong method":      {http.MethodGet, "/token", "", httpapi.Answer{Route: "/token", Method: "GET", Status: 405, Error: "invalid_request"}},
		"health":            {http.MethodGet, "/healthz", "", httpapi.Answer{Route: "/healthz", Method: "GET", Status: 200}},
		"wrong secret":      {http.MethodPost, "/token", good + "x", httpapi.Answer{Route: "/token", Method: "POST", Status: 401, GrantType: "client_credentials", Error: "invalid_client"}},
		"nothing there":     {http.MethodGet, "/made/up", "", httpapi.Answer{Method: "GET", Status: 404, Error: "invalid_request"}},
		"query left out":    {http.MethodGet, "/healthz?user=alice", "", httpapi.Answer{Route: "/healthz", Method: "GET", Status: 200}},
		"issuer's own path": {http.MethodGet, "/oauth", "", httpapi.Answer{Route: "/", Method: "GET", Status: 200}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var answers []httpapi.Answer
			s := newServer(t, newFake(), func(o *httpapi.Options) {
				o.Issuer = "https://as.example/oauth"
				o.Answered = func(_ context.Context, a httpapi.Answer) { answers = append(answers, a) }
			})
			r := httptest.NewRequest(tt.method, tt.target, strings.NewReader(tt.form))
			r.Header.Set("Content-Type", formType)
			s.ServeHTTP(httptest.NewRecorder(), r)
			check.Equal(t, "answers", len(answers), 1)
			if answers[0].Duration <= 0 {
				t.Fatalf("duration %v, want more than 0", answers[0].Duration)
			}
			answers[0].Duration = 0
			check.Equal(t, "answer", answers[0], tt.want)
		})
	}
}

// TestMetadataForOperators checks that the metadata name the requested address, unless it is the
// issuer's.
func TestMetadataForOperators(t *testing.T) {
	s := newServer(t, newFake(), func(o *httpapi.Options) { o.Issuer = "https://auth.example/idp" })
	for _, tt := range []struct {
		host          string
		tls           bool
		status        int
		issuer, token string
	}{
		{"127.0.0.1:9097", false, 200, "http://127.0.0.1:9097", "http://127.0.0.1:9097/token"},
		{"[::1]:9097", false, 200, "http://[::1]:9097", "http://[::1]:9097/token"},
		{"admin.example", true, 200, "https://admin.example", "https://admin.example/token"},
		{"auth.example", false, 200, "https://auth.example/idp", "https://auth.example/idp/token"},
		{"auth.example:9097", true, 200, "https://auth.example:9097", "https://auth.example:9097/token"},
		{"", false, 400, "", ""},
		{"evil.example/x", false, 400, "", ""},
		{"user@evil.example", false, 400, "", ""},
		{"evil.example?x", false, 400, "", ""},
		{"a b", false, 400, "", ""},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/.well-known/oauth-authorization-server", http.NoBody)
		if r.Host = tt.host; tt.tls {
			r.TLS = &tls.ConnectionState{}
		}
		w := httptest.NewRecorder()
		s.Operators().ServeHTTP(w, r)
		check.Equal(t, tt.host+": status", w.Code, tt.status)
		if tt.status != http.StatusOK {
			continue
		}
		var m struct {
			Issuer        string `json:"issuer"`
			TokenEndpoint string `json:"token_endpoint"`
		}
		check.OK(t, json.Unmarshal(w.Body.Bytes(), &m))
		check.Equal(t, tt.host+": issuer", m.Issuer, tt.issuer)
		check.Equal(t, tt.host+": token_endpoint", m.TokenEndpoint, tt.token)
	}
}

// TestForeignPagesForOperators checks that a page of another origin gets no answer, not even a
// readable refusal.
func TestForeignPagesForOperators(t *testing.T) {
	s := newServer(t, newFake(), func(o *httpapi.Options) { o.Issuer = "https://auth.example" })
	for origin, want := range map[string]int{
		"": 400, "http://admin.example": 400, "https://auth.example": 400, "https://evil.example": 403, "null": 403, "http://admin.example:81": 403,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://admin.example/token", http.NoBody)
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		w := httptest.NewRecorder()
		s.Operators().ServeHTTP(w, r)
		check.Equal(t, origin, w.Code, want)
		if want == http.StatusForbidden {
			check.Equal(t, "CORS", w.Header().Get("Access-Control-Allow-Origin"), "")
		}
	}
}

// TestForwardedHeadersForOperators checks that forwarded headers are ignored, so a client has only
// one address there.
func TestForwardedHeadersForOperators(t *testing.T) {
	for _, header := range []string{httpapi.XForwardedFor, httpapi.Forwarded} {
		var log bytes.Buffer
		s := newServer(t, newFake(), func(o *httpapi.Options) {
			trusting("192.0.2.0/24")(o)
			o.Addresses.TrustedHeader, o.Logger = header, slog.New(slog.NewJSONHandler(&log, nil))
		})
		for want, handler := range map[string]http.Handler{"198.51.100.1": s, "192.0.2.7": s.Operators()} {
			log.Reset()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/token", http.NoBody)
			r.RemoteAddr = "192.0.2.7:1"
			r.Header.Set(header, map[string]string{httpapi.XForwardedFor: "198.51.100.1", httpapi.Forwarded: "for=198.51.100.1"}[header])
			handler.ServeHTTP(httptest.NewRecorder(), r)
			var line map[string]any
			check.OK(t, json.Unmarshal(log.Bytes(), &line))
			check.Equal[any](t, header, line["remote"], want)
		}
	}
}
