package keys

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
)

// rsaBits is the size of RS256 keys. RFC 7518 3.3 requires at least 2048. Larger keys are several
// times slower, and a key lives only a few months.
const rsaBits = 2048

// key is a parsed [Record].
type key struct {
	record Record
	method jwt.SigningMethod
	signer crypto.Signer
	public crypto.PublicKey
	header string // encoded header of all its tokens
	jwk    jose.JSONWebKey
}

// generate makes a new random key.
func generate(alg Algorithm, generation int64, created, activeFrom time.Time) (*key, error) {
	signer, err := newSigner(alg)
	if err != nil {
		return nil, fmt.Errorf("keys: generate %s: %w", alg, err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(signer)
	if err != nil {
		return nil, fmt.Errorf("keys: encode %s: %w", alg, err)
	}
	public, err := newJWK(alg, signer.Public())
	if err != nil {
		return nil, err
	}
	return parse(Record{
		ID: public.KeyID, Algorithm: alg, Generation: generation, PrivateKey: der,
		CreatedAt: created, ActiveFrom: activeFrom,
	})
}

func newSigner(alg Algorithm) (crypto.Signer, error) {
	switch alg {
	case ES256:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case EdDSA:
		_, private, err := ed25519.GenerateKey(rand.Reader)
		return private, err
	case RS256:
		return rsa.GenerateKey(rand.Reader, rsaBits)
	}
	return nil, fmt.Errorf("unknown algorithm %q", alg)
}

// parse parses a stored key, and refuses a key that does not match its record.
func parse(r Record) (*key, error) {
	private, err := x509.ParsePKCS8PrivateKey(r.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("keys: key %q: not PKCS #8", r.ID) // the cause could quote key material
	}
	signer, ok := private.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("keys: key %q: %T cannot sign", r.ID, private)
	}
	public, err := newJWK(r.Algorithm, signer.Public())
	if err != nil {
		return nil, fmt.Errorf("keys: key %q: %w", r.ID, err)
	}
	if public.KeyID != r.ID {
		return nil, fmt.Errorf("keys: key %q: its thumbprint is %q", r.ID, public.KeyID)
	}
	header, err := json.Marshal(map[string]string{"alg": string(r.Algorithm), "kid": r.ID, "typ": tokenType})
	if err != nil {
		return nil, fmt.Errorf("keys: key %q: encode header: %w", r.ID, err)
	}
	return &key{
		record: r, method: jwt.GetSigningMethod(string(r.Algorithm)),
		signer: signer, public: signer.Public(), header: b64(header), jwk: public,
	}, nil
}

// newJWK returns the public key as published (RFC 7517 4, RFC 7518 6, RFC 8037 2). Its ID is its
// thumbprint (RFC 7638). The key must fit the algorithm.
func newJWK(alg Algorithm, public crypto.PublicKey) (jose.JSONWebKey, error) {
	fits := false
	switch p := public.(type) {
	case *ecdsa.PublicKey:
		fits = alg == ES256 && p.Curve == elliptic.P256()
	case ed25519.PublicKey:
		fits = alg == EdDSA
	case *rsa.PublicKey:
		fits = alg == RS256 && p.N.BitLen() >= rsaBits
	}
	if !fits {
		return jose.JSONWebKey{}, fmt.Errorf("keys: a key of type %T, or its size, does not fit %s", public, alg)
	}
	j := jose.JSONWebKey{Key: public, Algorithm: string(alg), Use: "sig"}
	thumbprint, err := j.Thumbprint(crypto.SHA256)
	if err != nil {
		return j, fmt.Errorf("keys: thumbprint: %w", err)
	}
	j.KeyID = b64(thumbprint)
	return j, nil
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
