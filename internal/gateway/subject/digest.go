package subject

import (
	"bytes"
	"crypto/sha256"
	"strings"
)

// Digest stands for a refresh token: the SHA-256 of one of its writings. The zero Digest stands for none.
type Digest [sha256.Size]byte

// NameDigest returns the digest of what is no refresh token.
func NameDigest(text string) Digest { return sha256.Sum256([]byte(text)) }

// DigestOf returns the digest of a refresh token as it stands in a request, after form decoding.
//
// Many servers decode the token before they look for it, and take several writings for one: the last character of base64 has
// bits without a meaning (RFC 4648 section 3.5), in a JWT those of its signature; its alphabets are taken for one another,
// and its padding may be there; hexadecimal digits have two cases; Ory Hydra does without its prefix. All writings
// of a token have the same digest: otherwise who knows the token has one more that leads to no user with each of them. Two
// tokens that are chosen by chance never have.
func DigestOf(token string) Digest { return digestOf([]byte(token)) }

// prefix begins refresh tokens of Ory Hydra, or does not.
const prefix = "ory_rt_"

func digestOf(token []byte) Digest {
	var space [2048]byte
	written := append(space[:0], bytes.TrimPrefix(token, []byte(prefix))...)
	for rest := written; len(rest) > 0; {
		part, n := rest, len(rest)
		if at := bytes.IndexByte(rest, '.'); at >= 0 {
			part, n = rest[:at], at+1
		}
		unify(part)
		rest = rest[n:]
	}
	kept := written[:0]
	for _, c := range written {
		if c != '=' {
			kept = append(kept, c)
		}
	}
	return sha256.Sum256(kept)
}

// shortest is the length of the shortest part whose last character is looked at: 128 bits in base64. Shorter ones may be
// numbers, of which the last character is the only one that differs.
const shortest = 22

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// unify makes one writing of all of a part of a token, in place.
func unify(part []byte) {
	part = bytes.TrimRight(part, "=")
	hex := true
	for i, c := range part {
		switch c {
		case '+':
			part[i] = '-'
		case '/':
			part[i] = '_'
		}
		hex = hex && isHex(c)
	}
	if unused := [4]int{2: 4, 3: 2}[len(part)%4]; unused > 0 && len(part) >= shortest && !hex {
		last := &part[len(part)-1]
		if value := strings.IndexByte(alphabet, *last); value >= 0 {
			*last = alphabet[value>>unused<<unused]
		}
	}
	for i, c := range part {
		if 'A' <= c && c <= 'Z' {
			part[i] = c + 'a' - 'A'
		}
	}
}

// IsZero reports whether the digest stands for no token.
func (d Digest) IsZero() bool { return d == Digest{} }
