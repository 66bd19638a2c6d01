package e2e

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/tokenclient"
)

// Attack (rfc9700): 2.1, 4.4 mix-up. Authorization responses carry `iss` (RFC 9207). Also
// tokenclient.TestMixUpEndsTheSignIn.
func TestMetadata(t *testing.T) {
	s := start(t, unlimited)
	r := s.get("/.well-known/oauth-authorization-server")
	r.requireStatus(t, http.StatusOK)
	check.Equal(t, "Content-Type", r.header.Get("Content-Type"), "application/json")
	m := r.object(t)
	// RFC 8414 section 3.3: the issuer is identical. RFC 9207 section 3: iss is announced.
	for name, want := range map[string]any{
		"issuer": s.Issuer, "response_types_supported": []any{"code"}, "code_challenge_methods_supported": []any{"S256"},
		"authorization_response_iss_parameter_supported": true,
	} {
		check.Equal(t, name, m[name], want)
	}
	for name, some := range map[string][]string{
		"grant_types_supported":                 {"authorization_code", "client_credentials", "refresh_token"},
		"token_endpoint_auth_methods_supported": {"client_secret_basic", "client_secret_post", "none"},
	} {
		all, _ := m[name].([]any)
		for _, want := range some {
			if !slices.Contains(all, any(want)) {
				t.Fatalf("%s is %v, without %s", name, all, want)
			}
		}
	}
	for name, value := range m { // what is empty is left out: RFC 8414 section 3.2
		if list, ok := value.([]any); value == nil || ok && len(list) == 0 {
			t.Fatalf("%s is there and empty", name)
		}
	}
	_, err := tokenclient.Discover(t.Context(), newHTTPClient(t), s.Issuer)
	check.OK(t, err)
}

// Every address in the metadata answers as what it is said to be.
func TestMetadataNamesWhatIsThere(t *testing.T) {
	s := start(t, unlimited)
	m := s.get("/.well-known/oauth-authorization-server").object(t)
	seen := 0
	for name, value := range m {
		address, ok := value.(string)
		if !ok || name == "issuer" || !strings.HasPrefix(address, "http") {
			continue
		}
		seen++
		path := strings.TrimPrefix(address, s.Issuer)
		if path == address {
			t.Fatalf("%s is %s, which is not below the issuer %s", name, address, s.Issuer)
		}
		switch name {
		case "token_endpoint", "revocation_endpoint", "introspection_endpoint":
			requireOAuthError(t, s.post(path, "", url.Values{"grant_type": {"client_credentials"}, "token": {"x"}}), 401, "invalid_client")
		case "authorization_endpoint":
			s.get(path).requireStatus(t, http.StatusBadRequest) // no client is named
		default:
			s.get(path).requireStatus(t, http.StatusOK)
		}
	}
	if seen < 5 {
		t.Fatalf("the metadata names %d addresses, want at least 5", seen)
	}
}

func TestKeys(t *testing.T) {
	s := start(t, unlimited)
	r := s.get("/.well-known/jwks.json")
	r.requireStatus(t, http.StatusOK)
	keys, _ := r.object(t)["keys"].([]any)
	if len(keys) == 0 {
		t.Fatalf("no keys in %s", r.body)
	}
	for _, k := range keys {
		key := k.(map[string]any)
		if kid, _ := key["kid"].(string); kid == "" || key["use"] != "sig" {
			t.Fatalf("a key without kid, or not for signatures: %v", key)
		}
		for _, private := range []string{"d", "p", "q", "dp", "dq", "qi", "k"} {
			if _, shown := key[private]; shown {
				t.Fatalf("a key shows its private part %s", private)
			}
		}
	}
}

func TestHealth(t *testing.T) {
	s := start(t, unlimited)
	for _, path := range []string{"/healthz", "/readyz"} {
		s.get(path).requireStatus(t, http.StatusOK)
	}
	check.Equal(t, "exit status after SIGTERM", s.stop(), 0)
}
