package e2e

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"oauth-server/internal/tokenclient"
)

func TestMetadata(t *testing.T) {
	s := start(t, unlimited)
	r := s.get("/.well-known/oauth-authorization-server")
	require.Equal(t, http.StatusOK, r.status)
	require.Equal(t, "application/json", r.header.Get("Content-Type"))
	m := r.object(t)
	require.Equal(t, s.Issuer, m["issuer"], "RFC 8414 3.3: identical")
	require.Equal(t, []any{"code"}, m["response_types_supported"])
	require.Equal(t, []any{"S256"}, m["code_challenge_methods_supported"], "RFC 8414 2, RFC 7636")
	require.Equal(t, true, m["authorization_response_iss_parameter_supported"], "RFC 9207 3")
	require.Subset(t, m["grant_types_supported"], []any{"authorization_code", "client_credentials", "refresh_token"})
	require.Subset(t, m["token_endpoint_auth_methods_supported"], []any{"client_secret_basic", "client_secret_post", "none"})
	for name := range m {
		require.NotNil(t, m[name], "RFC 8414 3.2: claims with zero elements are left out")
		if list, ok := m[name].([]any); ok {
			require.NotEmpty(t, list, name)
		}
	}
	_, err := tokenclient.Discover(t.Context(), newHTTPClient(t), s.Issuer)
	require.NoError(t, err)
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
		require.NotEqual(t, address, path, "%s lies below the issuer", name)
		switch name {
		case "token_endpoint", "revocation_endpoint", "introspection_endpoint":
			requireOAuthError(t, s.post(path, "", url.Values{"grant_type": {"client_credentials"}, "token": {"x"}}), 401, "invalid_client")
		case "authorization_endpoint":
			require.Equal(t, http.StatusBadRequest, s.get(path).status, "no client named")
		default:
			require.Equal(t, http.StatusOK, s.get(path).status, name)
		}
	}
	require.GreaterOrEqual(t, seen, 5)
}

func TestKeys(t *testing.T) {
	s := start(t, unlimited)
	r := s.get("/.well-known/jwks.json")
	require.Equal(t, http.StatusOK, r.status)
	keys, ok := r.object(t)["keys"].([]any)
	require.True(t, ok)
	require.NotEmpty(t, keys)
	for _, k := range keys {
		key := k.(map[string]any)
		require.NotEmpty(t, key["kid"])
		require.Equal(t, "sig", key["use"])
		for _, private := range []string{"d", "p", "q", "dp", "dq", "qi", "k"} {
			require.NotContains(t, key, private)
		}
	}
}

func TestHealth(t *testing.T) {
	s := start(t, unlimited)
	for _, path := range []string{"/healthz", "/readyz"} {
		require.Equal(t, http.StatusOK, s.get(path).status, path)
	}
	require.Equal(t, 0, s.stop(), "exit status after SIGTERM")
}
