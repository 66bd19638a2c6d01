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
	"math/big"
	"time"

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
	jwk    jwk
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
		ID: public.ID, Algorithm: alg, Generation: generation, PrivateKey: der,
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
	if public.ID != r.ID {
		return nil, fmt.Errorf("keys: key %q: its thumbprint is %q", r.ID, public.ID)
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

// jwk is a public key as published (RFC 7517 4, RFC 7518 6, RFC 8037 2).
type jwk struct {
	KeyType   string    `json:"kty"`
	Use       string    `json:"use"`
	Algorithm Algorithm `json:"alg"`
	ID        string    `json:"kid"`
	Curve     string    `json:"crv,omitempty"`
	X         string    `json:"x,omitempty"`
	Y         string    `json:"y,omitempty"`
	N         string    `json:"n,omitempty"`
	E         string    `json:"e,omitempty"`
}

// newJWK encodes a public key for the algorithm.
func newJWK(alg Algorithm, public crypto.PublicKey) (jwk, error) {
	j := jwk{Use: "sig", Algorithm: alg}
	switch p := public.(type) {
	case *ecdsa.PublicKey:
		if alg != ES256 || p.Curve != elliptic.P256() {
			return jwk{}, fmt.Errorf("keys: an elliptic curve key of %s does not fit %s", p.Params().Name, alg)
		}
		point, err := p.Bytes()
		if err != nil {
			return jwk{}, fmt.Errorf("keys: encode point: %w", err)
		}
		j.KeyType, j.Curve, j.X, j.Y = "EC", "P-256", b64(point[1:33]), b64(point[33:])
	case ed25519.PublicKey:
		if alg != EdDSA {
			return jwk{}, fmt.Errorf("keys: an Ed25519 key does not fit %s", alg)
		}
		j.KeyType, j.Curve, j.X = "OKP", "Ed25519", b64(p)
	case *rsa.PublicKey:
		if alg != RS256 || p.N.BitLen() < rsaBits {
			return jwk{}, fmt.Errorf("keys: an RSA key of %d bits does not fit %s", p.N.BitLen(), alg)
		}
		j.KeyType, j.N, j.E = "RSA", b64(p.N.Bytes()), b64(big.NewInt(int64(p.E)).Bytes())
	default:
		return jwk{}, fmt.Errorf("keys: unknown kind of key %T", public)
	}
	j.ID = j.thumbprint()
	return j, nil
}

// thumbprint returns the hash of the required members in lexicographic order, without white space
// (RFC 7638 3). The values need no escaping.
func (j jwk) thumbprint() string {
	var members string
	switch j.KeyType {
	case "EC":
		members = fmt.Sprintf(`{"crv":%q,"kty":%q,"x":%q,"y":%q}`, j.Curve, j.KeyType, j.X, j.Y)
	case "OKP":
		members = fmt.Sprintf(`{"crv":%q,"kty":%q,"x":%q}`, j.Curve, j.KeyType, j.X)
	case "RSA":
		members = fmt.Sprintf(`{"e":%q,"kty":%q,"n":%q}`, j.E, j.KeyType, j.N)
	}
	h := crypto.SHA256.New()
	_, _ = h.Write([]byte(members)) // a hash never fails to write
	return b64(h.Sum(nil))
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
