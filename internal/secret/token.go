package secret

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
)

// Bits is the entropy of every generated secret. RFC 6749 section 10.10 requires a guessing
// probability of at most 2^-128. 256 bits exceed that by far.
const Bits = 256

// New returns a fresh random secret of [Bits] bits, base64url without padding: 43 characters that
// need no escaping in a URL, a header or a form.
func New() string {
	var b [Bits / 8]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails: it crashes the program instead.
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// ID returns a fresh random identifier of 128 bits, base64url without padding. It names things such
// as token families and tokens (jti). It is not a secret and proves nothing.
func ID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// Digest is the SHA-256 of a generated secret, the only form in which a secret is stored. It is
// comparable, so it can key a map or an index. Looking up a secret by its digest leaks nothing
// useful through timing.
type Digest [sha256.Size]byte

// DigestOf hashes a secret as presented, byte for byte. Nothing is trimmed, so the right secret
// followed by NUL bytes does not match.
func DigestOf(secret string) Digest { return sha256.Sum256([]byte(secret)) }

// Matches reports whether presented hashes to d, in constant time. The zero Digest matches nothing.
func (d Digest) Matches(presented string) bool {
	return d.MatchesDigest(DigestOf(presented))
}

// MatchesDigest is like Matches, for an already computed digest. The zero Digest matches nothing.
func (d Digest) MatchesDigest(presented Digest) bool {
	return subtle.ConstantTimeCompare(d[:], presented[:]) == 1 && !d.IsZero()
}

// IsZero reports whether d was never set.
func (d Digest) IsZero() bool { return d == Digest{} }

// String returns the digest in hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Key returns the digest as a record key: its first 18 bytes in 24 characters of base64url.
func (d Digest) Key() string { return base64.RawURLEncoding.EncodeToString(d[:18]) }

// MarshalText writes the digest in hexadecimal. The zero Digest is empty.
func (d Digest) MarshalText() ([]byte, error) {
	if d.IsZero() {
		return []byte{}, nil
	}
	return []byte(d.String()), nil
}

// UnmarshalText parses the output of MarshalText.
func (d *Digest) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*d = Digest{}
		return nil
	}
	var out Digest
	if len(text) != hex.EncodedLen(len(out)) {
		return fmt.Errorf("secret: a digest is %d hexadecimal characters, not %d", 2*len(out), len(text))
	}
	if _, err := hex.Decode(out[:], text); err != nil {
		return fmt.Errorf("secret: a digest is %d hexadecimal characters", 2*len(out))
	}
	*d = out
	return nil
}
