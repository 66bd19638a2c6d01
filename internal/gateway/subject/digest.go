package subject

import "crypto/sha256"

// Digest stands for a refresh token: its SHA-256. The zero Digest stands for none.
type Digest [sha256.Size]byte

// DigestOf returns the digest of a refresh token as it stands in a request, after form decoding.
func DigestOf(token string) Digest { return sha256.Sum256([]byte(token)) }

// IsZero reports whether the digest stands for no token.
func (d Digest) IsZero() bool { return d == Digest{} }
