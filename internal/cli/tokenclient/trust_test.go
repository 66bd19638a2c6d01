package tokenclient_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/tokenclient"
	"oauth-server/internal/clientcfg"
)

func TestRequestValidate(t *testing.T) {
	good := tokenclient.Request{Issuer: "https://as.example", Grant: clientcfg.ClientCredentials, ClientID: "c", ClientSecret: "s"}
	if err := good.Validate(); err != nil {
		t.Fatalf("Validate() = %v", err)
	}
	cases := map[string]struct {
		change func(r *tokenclient.Request)
		want   string
	}{
		"plain http":          {func(r *tokenclient.Request) { r.Issuer = "http://as.example" }, "secrets need https"},
		"no issuer":           {func(r *tokenclient.Request) { r.Issuer = "" }, "not an absolute"},
		"another scheme":      {func(r *tokenclient.Request) { r.Issuer = "ftp://as.example" }, "not an absolute"},
		"issuer with query":   {func(r *tokenclient.Request) { r.Issuer += "?a" }, "without query"},
		"issuer with user":    {func(r *tokenclient.Request) { r.Issuer = "https://u:p@as.example" }, "user information"},
		"no grant":            {func(r *tokenclient.Request) { r.Grant = "" }, `grant: is required, one of ["`},
		"unknown grant":       {func(r *tokenclient.Request) { r.Grant = "implicit" }, `"implicit" is not one of`},
		"no client":           {func(r *tokenclient.Request) { r.ClientID = "" }, "client-id"},
		"no secret":           {func(r *tokenclient.Request) { r.ClientSecret = "" }, "client-secret"},
		"bad scope":           {func(r *tokenclient.Request) { r.Scopes = []string{"a b"} }, "scope-token"},
		"no password":         {func(r *tokenclient.Request) { r.Grant = clientcfg.Password }, "needs both"},
		"no refresh, nowhere": {func(r *tokenclient.Request) { r.Grant = clientcfg.RefreshToken }, "refresh-token"},
		"bad port":            {func(r *tokenclient.Request) { r.Grant, r.RedirectPort = clientcfg.AuthorizationCode, 70000 }, "not a port"},
		"bad path":            {func(r *tokenclient.Request) { r.Grant, r.RedirectPath = clientcfg.AuthorizationCode, "cb" }, "from the root"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := good
			tc.change(&r)
			check.ErrorSays(t, r.Validate(), tc.want)
			failsWith(t, &tokenclient.Client{}, r, tc.want)
		})
	}
	bad := tokenclient.Request{}
	for _, field := range []string{"issuer", "grant", "client-id"} { // all problems together
		check.ErrorSays(t, bad.Validate(), field)
	}
}

func TestMetadataURL(t *testing.T) {
	for issuer, want := range map[string]string{
		"https://as.example":        "https://as.example/.well-known/oauth-authorization-server",
		"https://as.example/":       "https://as.example/.well-known/oauth-authorization-server",
		"https://as.example/t/one":  "https://as.example/.well-known/oauth-authorization-server/t/one",
		"https://as.example/t%2Fx/": "https://as.example/.well-known/oauth-authorization-server/t%2Fx",
		"http://[::1]:9096":         "http://[::1]:9096/.well-known/oauth-authorization-server",
		"http://localhost:9096":     "http://localhost:9096/.well-known/oauth-authorization-server",
	} {
		if got, err := tokenclient.MetadataURL(issuer); got != want || err != nil {
			t.Errorf("MetadataURL(%q) = %q, %v, want %q", issuer, got, err, want)
		}
	}
}

func TestMetadataThatCannotBeTrusted(t *testing.T) {
	cases := map[string]struct {
		field string
		value any
		want  string
	}{
		"another issuer":        {"issuer", "https://evil.example", "its issuer is"},
		"a slash more":          {"issuer", "+/", "its issuer is"},
		"no token endpoint":     {"token_endpoint", "", "no token_endpoint"},
		"token over http":       {"token_endpoint", "http://as.example/token", "token_endpoint"},
		"authorize over http":   {"authorization_endpoint", "http://as.example/a", "authorization_endpoint"},
		"keys over http":        {"jwks_uri", "http://as.example/jwks", "jwks_uri"},
		"token elsewhere":       {"token_endpoint", "https://evil.example/token", "token_endpoint: "},
		"on another port":       {"token_endpoint", "http://127.0.0.1:1/token", "token_endpoint: "},
		"authorize elsewhere":   {"authorization_endpoint", "https://evil.example/a", "authorization_endpoint: "},
		"a field of wrong type": {"token_endpoint", 7, "not a JSON object"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFakeServer(t)
			if tc.value == "+/" {
				tc.value = f.URL + "/"
			}
			f.metadata = map[string]any{tc.field: tc.value}
			failsWith(t, newClient(t, f), request(f, clientcfg.ClientCredentials), tc.want)
			check.Equal(t, "grants asked for", f.grants(), []string{}) // the secret was sent nowhere
		})
	}
}

// TestMetadataOverTLS: an issuer that proves who it is may have endpoints elsewhere, with TLS.
func TestMetadataOverTLS(t *testing.T) {
	for endpoint, want := range map[string]string{
		"https://tokens.example/token": "",
		"http://127.0.0.1/token":       "must have the address of the issuer",
	} {
		mux := http.NewServeMux()
		server := httptest.NewTLSServer(mux)
		t.Cleanup(server.Close)
		mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			check.OK(t, json.NewEncoder(w).Encode(map[string]string{"issuer": server.URL, "token_endpoint": endpoint}))
		})
		_, err := tokenclient.Discover(t.Context(), server.Client(), server.URL)
		if want == "" {
			check.OK(t, err)
			continue
		}
		check.ErrorSays(t, err, want)
		check.Equal(t, "it is of the issuer", errors.Is(err, tokenclient.ErrNoIssuer), true)
	}
}

func TestClaims(t *testing.T) {
	cases := map[string]struct {
		change  func(f *fakeServer)
		opaque  bool
		problem string
	}{
		"an opaque token":       {func(f *fakeServer) { f.answer = func(r map[string]any) { r["access_token"] = "opaque" } }, true, ""},
		"another issuer":        {func(f *fakeServer) { f.claims = func(c map[string]any) { c["iss"] = "https://evil.example" } }, false, "issued by a different provider"},
		"expired":               {func(f *fakeServer) { f.claims = func(c map[string]any) { c["exp"] = 1 } }, false, "expired"},
		"no keys are published": {func(f *fakeServer) { f.metadata = map[string]any{"jwks_uri": ""} }, false, "publishes no keys"},
		"a forged signature": {func(f *fakeServer) {
			f.answer = func(r map[string]any) {
				parts := strings.Split(r["access_token"].(string), ".")
				r["access_token"] = parts[0] + "." + parts[1] + "." + strings.Repeat("A", len(parts[2]))
			}
		}, false, "signature"},
		"alg none": {func(f *fakeServer) {
			f.answer = func(r map[string]any) {
				r["access_token"] = "eyJhbGciOiJub25lIn0." + strings.Split(r["access_token"].(string), ".")[1] + "."
			}
		}, false, "algorithm"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFakeServer(t)
			tc.change(f)
			c := token(t, newClient(t, f), request(f, clientcfg.ClientCredentials), tokenclient.Issued).Claims
			if c == nil || tc.opaque {
				if (c == nil) != tc.opaque {
					t.Errorf("claims %+v", c)
				}
				return
			}
			if c.Verified || !strings.Contains(c.Problem, tc.problem) || !json.Valid(c.Payload) {
				t.Errorf("verified %t, problem %q, payload %s", c.Verified, c.Problem, c.Payload)
			}
		})
	}
}
