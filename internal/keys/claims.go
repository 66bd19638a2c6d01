package keys

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"oauth-server/internal/secret"
)

// tokenType is the typ of an access token (RFC 9068 2.1).
const tokenType = "at+jwt"

// maxTokenLength is the longest token, in bytes, that Verify parses.
const maxTokenLength = 16 << 10

// ErrInvalidToken is wrapped, with the reason, in the error of [Ring.Verify] for an invalid token.
var ErrInvalidToken = errors.New("keys: invalid token")

// Claims are the content of an access token (RFC 9068 2.2). Times in a token are rounded down to
// whole seconds.
type Claims struct {
	Issuer    string // set by Sign
	Subject   string
	Audience  []string
	ClientID  string
	Scopes    []string
	IssuedAt  time.Time
	ExpiresAt time.Time
	AuthTime  time.Time // when the user signed in; zero if there is no user
	ID        string    // jti
	Family    string    // private claim "fam": the authorization that the token descends from; empty if there is no user
	// ClientStamp and UserStamp are the stamps at issue: private claims "cst" and "ust".
	ClientStamp, UserStamp secret.Stamp
}

// wireClaims is the JSON of [Claims].
type wireClaims struct {
	Issuer    string   `json:"iss"`
	Subject   string   `json:"sub"`
	Audience  audience `json:"aud"`
	ClientID  string   `json:"client_id"`
	Scope     string   `json:"scope,omitempty"`
	IssuedAt  int64    `json:"iat"`
	ExpiresAt int64    `json:"exp"`
	AuthTime  int64    `json:"auth_time,omitempty"`
	ID        string   `json:"jti"`
	Family    string   `json:"fam,omitempty"`

	ClientStamp secret.Stamp `json:"cst,omitzero"`
	UserStamp   secret.Stamp `json:"ust,omitzero"`
}

// audience is one or several strings (RFC 7519 4.1.3).
type audience []string

// MarshalJSON writes a single audience as a string, which every verifier can read.
func (a audience) MarshalJSON() ([]byte, error) {
	if len(a) == 1 {
		return json.Marshal(a[0])
	}
	return json.Marshal([]string(a))
}

// UnmarshalJSON reads both forms.
func (a *audience) UnmarshalJSON(b []byte) error {
	var list jwt.ClaimStrings
	if err := list.UnmarshalJSON(b); err != nil {
		return err
	}
	*a = audience(list)
	return nil
}

func (c Claims) wire(issuer string) wireClaims {
	w := wireClaims{
		Issuer: issuer, Subject: c.Subject, Audience: c.Audience, ClientID: c.ClientID,
		Scope: strings.Join(c.Scopes, " "), IssuedAt: c.IssuedAt.Unix(), ExpiresAt: c.ExpiresAt.Unix(),
		ID: c.ID, Family: c.Family, ClientStamp: c.ClientStamp, UserStamp: c.UserStamp,
	}
	if !c.AuthTime.IsZero() {
		w.AuthTime = c.AuthTime.Unix()
	}
	return w
}

func (w wireClaims) claims() Claims {
	c := Claims{
		Issuer: w.Issuer, Subject: w.Subject, Audience: w.Audience, ClientID: w.ClientID,
		Scopes: strings.Fields(w.Scope), IssuedAt: time.Unix(w.IssuedAt, 0), ExpiresAt: time.Unix(w.ExpiresAt, 0),
		ID: w.ID, Family: w.Family, ClientStamp: w.ClientStamp, UserStamp: w.UserStamp,
	}
	if w.AuthTime != 0 {
		c.AuthTime = time.Unix(w.AuthTime, 0)
	}
	return c
}

// sign encodes and signs the claims. The header was encoded when the key was parsed, so a token
// costs little more than its signature.
func (k *key) sign(w wireClaims) (string, error) {
	payload, err := json.Marshal(&w)
	if err != nil {
		return "", fmt.Errorf("keys: encode claims: %w", err)
	}
	encoding := base64.RawURLEncoding
	var space [512]byte
	var token strings.Builder // its text is signed and returned without copying
	token.Grow(len(k.header) + 2 + encoding.EncodedLen(len(payload)) + encoding.EncodedLen(usualSignature))
	token.WriteString(k.header)
	token.WriteByte('.')
	token.Write(encoding.AppendEncode(space[:0], payload))
	signature, err := k.signature(token.String())
	if err != nil {
		return "", fmt.Errorf("keys: sign with %q: %w", k.record.ID, err)
	}
	token.WriteByte('.')
	token.Write(encoding.AppendEncode(space[:0], signature))
	return token.String(), nil
}

// signature signs a text. ES256 is deterministic (RFC 6979), as RFC 8725 3.2 recommends: the method of
// the library takes a random number for each signature, and more time.
func (k *key) signature(text string) ([]byte, error) {
	private, isECDSA := k.signer.(*ecdsa.PrivateKey)
	if !isECDSA {
		return k.method.Sign(text, k.signer)
	}
	digest := sha256.Sum256([]byte(text))
	der, err := private.Sign(nil, digest[:], crypto.SHA256)
	if err != nil {
		return nil, err
	}
	var numbers cryptobyte.String
	var r, s []byte
	input := cryptobyte.String(der)
	if !input.ReadASN1(&numbers, asn1.SEQUENCE) || !numbers.ReadASN1Integer(&r) || !numbers.ReadASN1Integer(&s) {
		return nil, errors.New("not a signature in ASN.1")
	}
	signature := make([]byte, usualSignature) // RFC 7518 3.4
	copy(signature[usualSignature/2-len(r):], r)
	copy(signature[usualSignature-len(s):], s)
	return signature, nil
}

// usualSignature is the length in bytes of an ES256 or EdDSA signature.
const usualSignature = 64

// verify checks a token against the keys of the snapshot. The header must be the one that sign
// writes, which decides the key and the algorithm. It does not check nbf, because these tokens have
// no nbf.
func (s *snapshot) verify(token, issuer string, now time.Time) (Claims, error) {
	invalid := func(reason string) (Claims, error) { return Claims{}, fmt.Errorf("%w: %s", ErrInvalidToken, reason) }
	if len(token) > maxTokenLength {
		return invalid(fmt.Sprintf("longer than %d bytes", maxTokenLength))
	}
	if strings.ContainsAny(token, "\r\n") {
		return invalid("contains a line break") // base64 decoders skip line breaks
	}
	header, rest, _ := strings.Cut(token, ".")
	encoded, signature, _ := strings.Cut(rest, ".")
	k := s.signedBy(header)
	if k == nil {
		return invalid("signed with an unpublished key, or not an access token of this server")
	}
	strict := base64.RawURLEncoding.Strict()
	sum, err := strict.DecodeString(signature)
	if err == nil {
		err = k.method.Verify(token[:len(header)+1+len(encoded)], sum, k.public)
	}
	var payload []byte
	if err == nil {
		payload, err = strict.DecodeString(encoded)
	}
	var w wireClaims
	if err == nil {
		err = json.Unmarshal(payload, &w)
	}
	switch {
	case err != nil:
		return invalid(err.Error())
	case w.Issuer != issuer:
		return invalid("from another issuer")
	case !now.Before(time.Unix(w.ExpiresAt, 0)):
		return invalid("expired")
	}
	return w.claims(), nil
}

// signedBy returns the published key of tokens with that encoded header, or nil.
func (s *snapshot) signedBy(header string) *key {
	for _, k := range s.byID {
		if k.header == header {
			return k
		}
	}
	return nil
}
