package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/oautherr"
)

// The numbered pitfalls of go-oauth2 that concern HTTP. internal/grants shows the faults of the
// stock library under the same numbers.

func TestPitfall07_StatusesAndChallenge(t *testing.T) {
	for code, status := range map[oautherr.Code]int{
		oautherr.InvalidGrant: http.StatusBadRequest, oautherr.UnsupportedGrantType: http.StatusBadRequest,
		oautherr.UnauthorizedClient: http.StatusBadRequest, oautherr.InvalidClient: http.StatusUnauthorized,
		oautherr.ServerError: http.StatusInternalServerError, oautherr.TemporarilyUnavailable: http.StatusServiceUnavailable,
	} {
		t.Run(string(code), func(t *testing.T) {
			f := newFake()
			f.failToken = &grants.Error{Code: code, Description: "no"}
			res := request{path: "/token", body: form("grant_type", "x", "client_id", "shop")}.send(t, newServer(t, f, nil))
			wantOAuthError(t, res, status, code) // includes the challenge, with 401 only
		})
	}
}

func TestPitfall10_CredentialsAndParameters(t *testing.T) {
	t.Run("Basic credentials are form-decoded", func(t *testing.T) {
		f := newFake()
		res := request{
			path: "/token", body: form("grant_type", "client_credentials"),
			header: http.Header{"Authorization": basic("sh%6Fp", "s%33cret")},
		}.send(t, newServer(t, f, nil))
		wantStatus(t, res, http.StatusOK)
		check.Equal(t, "credentials", f.token.Credentials, grants.Credentials{Method: grants.AuthBasic, ClientID: "shop", Secret: "s3cret", RawSecret: "s%33cret"})
	})
	t.Run("parameters in the query do not count", func(t *testing.T) {
		good := form("grant_type", "client_credentials", "client_id", "shop", "client_secret", secretOf)
		res := request{path: "/token?" + good}.send(t, newServer(t, newFake(), nil))
		wantOAuthError(t, res, http.StatusBadRequest, oautherr.InvalidRequest)
	})
}

func TestPitfall12_EveryEndpointIsThere(t *testing.T) {
	s := newServer(t, newFake(), nil)
	res := request{method: http.MethodGet, path: "/.well-known/oauth-authorization-server"}.send(t, s)
	wantStatus(t, res, http.StatusOK)
	var metadata map[string]any
	check.OK(t, json.Unmarshal([]byte(res.Body), &metadata))
	for _, endpoint := range []string{"revocation_endpoint", "introspection_endpoint", "jwks_uri"} {
		if metadata[endpoint] == nil || metadata[endpoint] == "" {
			t.Fatalf("no %s in %s", endpoint, res.Body)
		}
	}
	keys := request{method: http.MethodGet, path: "/.well-known/jwks.json"}.send(t, s)
	wantStatus(t, keys, http.StatusOK)
	auth := http.Header{"Authorization": basic("shop", secretOf)}
	for _, path := range []string{"/introspect", "/revoke"} {
		res := request{path: path, body: form("token", "good"), header: auth}.send(t, s)
		wantStatus(t, res, http.StatusOK)
	}
}
