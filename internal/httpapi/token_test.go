package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"oauth-server/internal/grants"
	"oauth-server/internal/httpapi"
)

func TestTokenAnswer(t *testing.T) {
	res := request{path: "/token", body: form("grant_type", "client_credentials", "client_id", "shop", "client_secret", secretOf)}.
		send(t, newServer(t, newFake(), nil))
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, "application/json", res.Header.Get("Content-Type"))
	require.Equal(t, "no-store", res.Header.Get("Cache-Control"))
	require.Equal(t, "no-cache", res.Header.Get("Pragma"))
	require.JSONEq(t, `{"access_token":"a.b.c","token_type":"Bearer","expires_in":3600,"refresh_token":"r","scope":"read write"}`, res.Body)
}

// TestTokenReading checks what the grants see of a request.
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
			grants.Credentials{Method: grants.AuthBasic, ClientID: "my-shop", Secret: "a:b c+ü"},
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
			require.Equal(t, want, f.token)
		})
	}
}

func TestIntrospectAnswer(t *testing.T) {
	s := newServer(t, newFake(), nil)
	ask := func(token string) string {
		res := request{path: "/introspect", body: form("token", token, "client_id", "shop", "client_secret", secretOf)}.send(t, s)
		require.Equal(t, http.StatusOK, res.StatusCode)
		require.Equal(t, "application/json", res.Header.Get("Content-Type"))
		require.Equal(t, "no-store", res.Header.Get("Cache-Control"))
		return res.Body
	}
	require.JSONEq(t, `{"active":true,"scope":"read","client_id":"shop","username":"alice","token_type":"Bearer",
		"exp":200,"iat":100,"sub":"alice","aud":["api"],"iss":"http://id.example","jti":"j1"}`, ask("good"))
	require.JSONEq(t, `{"active":false}`, ask("bad"))
}

func TestRevokeAnswer(t *testing.T) {
	f := newFake()
	res := request{path: "/revoke", body: form("token", "t", "token_type_hint", "refresh_token", "client_id", "shop", "client_secret", secretOf)}.
		send(t, newServer(t, f, nil))
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Empty(t, res.Body)
	require.Equal(t, "no-store", res.Header.Get("Cache-Control"))
	require.Equal(t, "t", f.query.Token)
	require.Equal(t, "refresh_token", f.query.Hint)
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
			require.Equal(t, http.StatusOK, res.StatusCode)
			require.Equal(t, "application/json", res.Header.Get("Content-Type"))
			var doc map[string]any
			require.NoError(t, json.Unmarshal([]byte(res.Body), &doc))
			require.Equal(t, tt.issuer, doc["issuer"])
			require.Equal(t, []any{"S256"}, doc["code_challenge_methods_supported"])
			require.Equal(t, []any{"code"}, doc["response_types_supported"])
			require.Equal(t, true, doc["authorization_response_iss_parameter_supported"])
			require.NotContains(t, doc["grant_types_supported"], "password")
			for field, path := range map[string]string{
				"token_endpoint": "/token", "authorization_endpoint": "/authorize", "jwks_uri": "/.well-known/jwks.json",
				"introspection_endpoint": "/introspect", "revocation_endpoint": "/revoke",
			} {
				require.Equal(t, tt.base+path, doc[field])
				local := strings.TrimPrefix(tt.base+path, "https://id.example")
				require.NotEqual(t, http.StatusNotFound, request{method: "GET", path: local}.send(t, s).StatusCode, local)
			}
		})
	}
}

func TestJWKS(t *testing.T) {
	res := request{method: "GET", path: "/.well-known/jwks.json"}.send(t, newServer(t, newFake(), nil))
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, "application/json", res.Header.Get("Content-Type"))
	require.JSONEq(t, `{"keys":[]}`, res.Body)
}

func TestNewRefuses(t *testing.T) {
	for name, issuer := range map[string]string{
		"empty": "", "relative": "/x", "no host": "https:///x", "ftp": "ftp://x", "query": "https://x/?a=b",
		"empty query": "https://x/?", "fragment": "https://x/#", "user": "https://me@x/", "parameter": "https://x/:a", "star": "https://x/*",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			_, err := httpapi.New(httpapi.Options{Issuer: issuer, Tokens: f, Authorizations: f, Sessions: f, Inspector: f, Keys: f})
			require.ErrorContains(t, err, "issuer")
		})
	}
	_, err := httpapi.New(httpapi.Options{Issuer: "https://x"})
	for _, missing := range []string{"Tokens", "Authorizations", "Sessions", "Inspector", "Keys"} {
		require.ErrorContains(t, err, "Options."+missing)
	}
}
