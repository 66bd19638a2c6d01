package e2e

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"oauth-server/internal/check"
)

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

func TestEachSigningAlgorithm(t *testing.T) {
	for _, algorithm := range []string{"ES256", "EdDSA", "RS256"} {
		t.Run(algorithm, func(t *testing.T) {
			s := start(t, unlimited+"tokens: { algorithm: "+algorithm+" }\n")
			token, err := s.credentials("shop").Token(with(t))
			check.OK(t, err)
			verify(t, s, token.AccessToken)
			jws, err := jose.ParseSigned(token.AccessToken, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(algorithm)})
			check.OK(t, err)
			check.Equal(t, "alg", jws.Signatures[0].Protected.Algorithm, algorithm)
		})
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
