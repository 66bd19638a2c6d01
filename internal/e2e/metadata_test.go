package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"golang.org/x/oauth2"

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

var inactive = map[string]any{"active": false}

func TestIntrospection(t *testing.T) {
	s := start(t, unlimited)
	token := s.signIn(with(t), s.config("web"))

	got := s.introspect("shop", token.AccessToken)
	for name, want := range map[string]any{
		"active": true, "client_id": "web", "username": user, "sub": user, "scope": "read", "iss": s.Issuer,
		"token_type": "Bearer", "jti": verify(t, s, token.AccessToken).ID,
	} {
		check.Equal(t, name, got[name], want)
	}
	check.Equal(t, "active, to the client that holds the refresh token", s.introspect("web", token.RefreshToken)["active"], true)
	check.Equal(t, "answer to another client", s.introspect("shop", token.RefreshToken), inactive)
	check.Equal(t, "active, to the client of the token", s.introspect("web", token.AccessToken)["active"], true)
	check.Equal(t, "answer to a client that is no resource server", s.introspect("other", token.AccessToken), inactive)
	requireOAuthError(t, s.post("/introspect", "", url.Values{"client_id": {"native"}, "token": {token.AccessToken}}), 401, "invalid_client")
	for _, bad := range []string{"garbage", "a.b.c", token.AccessToken + "x", token.AccessToken[:len(token.AccessToken)-2]} {
		check.Equal(t, "answer about "+bad, s.introspect("shop", bad), inactive)
	}
	requireOAuthError(t, s.post("/introspect", "", url.Values{"token": {token.AccessToken}}), 401, "invalid_client")
	requireOAuthError(t, s.post("/introspect", "shop", url.Values{}), 400, "invalid_request")
}

// TestQueryLimits: /introspect and /revoke have limits for each client, and those of a public client
// for each address.
func TestQueryLimits(t *testing.T) {
	s := start(t, unlimited+"inspection: { introspect_per_second: 1, revoke_per_second: 1 }\n")
	for path, clientID := range map[string]string{"/introspect": "other", "/revoke": "native"} {
		form := url.Values{"token": {"random"}}
		if secrets[clientID] == "" {
			form.Set("client_id", clientID)
			clientID = ""
		}
		var last reply
		for range 12 { // ten, one more if a frame ends meanwhile, and the one that is denied
			last = s.post(path, clientID, form)
		}
		requireOAuthError(t, last, http.StatusTooManyRequests, "temporarily_unavailable")
		check.Equal(t, "has Retry-After", last.header.Get("Retry-After") != "", true)
	}
	check.Equal(t, "another client", s.introspect("shop", "random"), inactive)
}

func TestRevocation(t *testing.T) {
	s := start(t, unlimited)
	c := s.config("web")
	b := newBrowser(t)
	issue := func() *oauth2.Token {
		code, verifier := s.code(b, c)
		token, err := c.Exchange(with(t), code, oauth2.VerifierOption(verifier))
		check.OK(t, err)
		return token
	}
	revoke := func(clientID, token string) reply {
		return s.post("/revoke", clientID, url.Values{"token": {token}, "token_type_hint": {"refresh_token"}})
	}
	t.Run("a refresh token takes its family along", func(t *testing.T) {
		token := issue()
		r := revoke("web", token.RefreshToken)
		r.requireStatus(t, http.StatusOK)
		check.Equal(t, "Cache-Control", r.header.Get("Cache-Control"), "no-store")
		check.Equal(t, "the refresh token", s.introspect("web", token.RefreshToken), inactive)
		check.Equal(t, "the access token", s.introspect("web", token.AccessToken), inactive)
		_, err := refresh(with(t), c, token.RefreshToken)
		requireRefused(t, err, 400, "invalid_grant")
	})
	t.Run("an access token goes alone", func(t *testing.T) {
		token := issue()
		revoke("web", token.AccessToken).requireStatus(t, http.StatusOK) // the hint is wrong, which does no harm
		check.Equal(t, "the access token", s.introspect("web", token.AccessToken), inactive)
		_, err := refresh(with(t), c, token.RefreshToken)
		check.OK(t, err)
	})
	t.Run("the token of another client stays", func(t *testing.T) {
		token := issue()
		if r := revoke("other", token.RefreshToken); r.status >= 500 {
			t.Fatalf("status %d: %s", r.status, r.body)
		}
		check.Equal(t, "active", s.introspect("web", token.RefreshToken)["active"], true)
	})
	t.Run("an unknown token is revoked enough", func(t *testing.T) {
		revoke("web", "unknown").requireStatus(t, http.StatusOK) // RFC 7009 section 2.2
	})
	t.Run("revocations survive kill -9", func(t *testing.T) {
		token := issue()
		revoke("web", token.RefreshToken).requireStatus(t, http.StatusOK)
		s.kill()
		s.up()
		check.Equal(t, "the access token", s.introspect("web", token.AccessToken), inactive)
		_, err := refresh(with(t), c, token.RefreshToken)
		requireRefused(t, err, 400, "invalid_grant")
	})
}

// claims are those of RFC 9068 section 2.2.
type claims struct {
	Issuer   string          `json:"iss"`
	Subject  string          `json:"sub"`
	Audience json.RawMessage `json:"aud"`
	ClientID string          `json:"client_id"`
	Scope    string          `json:"scope"`
	IssuedAt int64           `json:"iat"`
	Expires  int64           `json:"exp"`
	ID       string          `json:"jti"`
}

func (c claims) expiry() time.Time { return time.Unix(c.Expires, 0) }

// verify checks a token as a resource server does: with go-oidc, by the keys
// that the server publishes.
func verify(tb testing.TB, s *server, token string) claims {
	tb.Helper()
	ctx := oidc.ClientContext(tb.Context(), newHTTPClient(tb))
	keys := oidc.NewRemoteKeySet(ctx, s.Issuer+"/.well-known/jwks.json")
	verifier := oidc.NewVerifier(s.Issuer, keys, &oidc.Config{
		SkipClientIDCheck: true, SupportedSigningAlgs: []string{"ES256", "EdDSA", "RS256"},
	})
	checked, err := verifier.Verify(ctx, token)
	check.OK(tb, err)
	var c claims
	check.OK(tb, checked.Claims(&c))
	if c.ID == "" || len(c.Audience) == 0 || c.IssuedAt == 0 || c.IssuedAt >= c.Expires {
		tb.Fatalf("jti, aud or iat is missing, or exp does not follow iat: %+v", c)
	}

	jws, err := jose.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256, jose.EdDSA, jose.RS256})
	check.OK(tb, err)
	header := jws.Signatures[0].Protected
	if kind := header.ExtraHeaders[jose.HeaderType]; kind != "at+jwt" || header.KeyID == "" {
		tb.Fatalf("typ is %v, want at+jwt (RFC 9068 section 2.1); kid is %q", kind, header.KeyID)
	}
	return c
}

func TestTokensOfOneSecondDiffer(t *testing.T) {
	s := start(t, unlimited)
	seen := map[string]bool{}
	ids := map[string]bool{}
	for range 20 {
		token, err := s.credentials("shop").Token(with(t))
		check.OK(t, err)
		c := verify(t, s, token.AccessToken)
		if seen[token.AccessToken] || ids[c.ID] {
			t.Fatalf("a token was issued twice, or its jti %s was", c.ID)
		}
		seen[token.AccessToken], ids[c.ID] = true, true
	}
}

// Changing the algorithm makes a new key; tokens of the old one stay good.
func TestOldTokensOutliveANewKey(t *testing.T) {
	s := start(t, unlimited)
	token, err := s.credentials("shop").Token(with(t))
	check.OK(t, err)
	check.Equal(t, "exit status", s.stop(), 0)
	s.configure(unlimited + "tokens: { algorithm: EdDSA }\n")
	s.up()
	verify(t, s, token.AccessToken)
	next, err := s.credentials("shop").Token(with(t))
	check.OK(t, err)
	verify(t, s, next.AccessToken)
}
