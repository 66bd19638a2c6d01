package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
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
	_, err := httpapi.New(httpapi.Options{Issuer: "https://x"})
	holds(t, fmt.Sprint(err), "is missing")
}
