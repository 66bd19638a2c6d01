package tokenclient

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// signingAlgorithms are those that the server can sign with, all asymmetric; "none" and HMAC are
// never accepted.
var signingAlgorithms = []string{oidc.ES256, oidc.EdDSA, oidc.RS256}

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
	payload, err := decodeJWT(token)
	if err != nil {
		return nil
	}
	c := &Claims{Payload: payload}
	if err := verifyJWT(ctx, client, m, token, now); err != nil {
		c.Problem = err.Error()
		return c
	}
	c.Verified = true
	return c
}

func verifyJWT(ctx context.Context, client *http.Client, m *Metadata, token string, now func() time.Time) error {
	if m == nil || m.JWKSURI == "" {
		return errors.New("the server publishes no keys")
	}
	keys := oidc.NewRemoteKeySet(oidc.ClientContext(ctx, client), m.JWKSURI)
	verifier := oidc.NewVerifier(m.Issuer, keys, &oidc.Config{
		SkipClientIDCheck:    true, // aud names the resource, not this client
		SupportedSigningAlgs: signingAlgorithms,
		Now:                  now,
	})
	_, err := verifier.Verify(ctx, token)
	return err
}

// decodeJWT returns the claims of a signed JWT without checking anything.
func decodeJWT(token string) (json.RawMessage, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, errors.New("not a signed JWT: it has not three parts")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil, fmt.Errorf("not a signed JWT: %w", err)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(payload, &object); err != nil {
		return nil, fmt.Errorf("not a signed JWT: %w", err)
	}
	return payload, nil
}
