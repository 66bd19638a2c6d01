package e2e

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"oauth-server/internal/clientcfg"
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

func grantOf(name string) clientcfg.Grant { return clientcfg.Grant(name) }

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
	require.NoError(tb, err)
	var c claims
	require.NoError(tb, checked.Claims(&c))
	require.NotEmpty(tb, c.ID)
	require.NotEmpty(tb, c.Audience)
	require.NotZero(tb, c.IssuedAt)
	require.Less(tb, c.IssuedAt, c.Expires)

	jws, err := jose.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256, jose.EdDSA, jose.RS256})
	require.NoError(tb, err)
	header := jws.Signatures[0].Protected
	require.Equal(tb, "at+jwt", header.ExtraHeaders[jose.HeaderType], "RFC 9068 2.1")
	require.NotEmpty(tb, header.KeyID)
	return c
}

func TestTokensOfOneSecondDiffer(t *testing.T) {
	s := start(t, unlimited)
	seen := map[string]bool{}
	ids := map[string]bool{}
	for range 20 {
		token, err := s.credentials("shop").Token(with(t))
		require.NoError(t, err)
		require.False(t, seen[token.AccessToken])
		seen[token.AccessToken] = true
		c := verify(t, s, token.AccessToken)
		require.False(t, ids[c.ID])
		ids[c.ID] = true
	}
}

func TestEachSigningAlgorithm(t *testing.T) {
	for _, algorithm := range []string{"ES256", "EdDSA", "RS256"} {
		t.Run(algorithm, func(t *testing.T) {
			s := start(t, unlimited+"tokens: { algorithm: "+algorithm+" }\n")
			token, err := s.credentials("shop").Token(with(t))
			require.NoError(t, err)
			verify(t, s, token.AccessToken)
			jws, err := jose.ParseSigned(token.AccessToken, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(algorithm)})
			require.NoError(t, err)
			require.Equal(t, algorithm, jws.Signatures[0].Protected.Algorithm)
		})
	}
}

// Changing the algorithm makes a new key; tokens of the old one stay good.
func TestOldTokensOutliveANewKey(t *testing.T) {
	s := start(t, unlimited)
	token, err := s.credentials("shop").Token(with(t))
	require.NoError(t, err)
	require.Equal(t, 0, s.stop())
	s.configure(unlimited + "tokens: { algorithm: EdDSA }\n")
	s.up()
	verify(t, s, token.AccessToken)
	next, err := s.credentials("shop").Token(with(t))
	require.NoError(t, err)
	verify(t, s, next.AccessToken)
}
