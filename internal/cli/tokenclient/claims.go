package tokenclient

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// Claims are the claims of a JWT access token (RFC 9068 section 2.2).
type Claims struct {
	// Payload is the JSON object of the claims as it stands in the token.
	Payload json.RawMessage
	// Verified means that the signature was checked with the server's published keys, and the
	// issuer and the expiry too. Otherwise Problem is why not, and the claims are only decoded.
	Verified bool
	Problem  string
}

// readClaims decodes the token and tries to verify it. It returns nil for an opaque token. A client
// must not rely on the content of an access token (RFC 6749 section 1.4); the claims are shown to
// people who try the server.
func readClaims(ctx context.Context, client *http.Client, m *Metadata, token string, now func() time.Time) *Claims {
	c := &Claims{Payload: decodeJWT(token)}
	if c.Payload == nil {
		return nil
	}
	err := errors.New("the server publishes no keys")
	if m != nil && m.JWKSURI != "" {
		keys := oidc.NewRemoteKeySet(oidc.ClientContext(ctx, client), m.JWKSURI)
		_, err = oidc.NewVerifier(m.Issuer, keys, &oidc.Config{
			SkipClientIDCheck:    true,                                         // aud names the resource, not this client
			SupportedSigningAlgs: []string{oidc.ES256, oidc.EdDSA, oidc.RS256}, // those of this server
			Now:                  now,
		}).Verify(ctx, token)
	}
	c.Verified = err == nil
	if err != nil {
		c.Problem = err.Error()
	}
	return c
}

// decodeJWT returns the claims of a signed JWT without checking anything, or nil for another token.
func decodeJWT(token string) json.RawMessage {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(payload, &object) != nil {
		return nil
	}
	return payload
}
