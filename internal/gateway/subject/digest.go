package subject

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"unicode/utf8"
)

// Digest stands for a refresh token: the SHA-256 of what all of its writings have in common. The zero Digest stands for none.
type Digest [sha256.Size]byte

// NameDigest returns the digest of what is no refresh token.
func NameDigest(text string) Digest { return sha256.Sum256([]byte(text)) }

// DigestOf returns the digest of a refresh token as it stands in a request, after form decoding.
//
// Many servers decode the token before they look for it, and take several writings for one. All writings of a token have the
// same digest: otherwise who knows the token has one more that leads to no user with each of them.
//
//   - Of a JWT (RFC 7515, RFC 7516) it is that of all but what authenticates it, which servers verify as it is written: of a
//     signed one the header and the payload, so the signature may be written in any way, and be followed by anything;
//     of an encrypted one all but the tag, each part compared as below.
//   - Of any other token it is that of its letters and digits, in lower case: decoders of base64 (RFC 4648) take its two
//     alphabets for one another, do without padding and skip what is none of their characters; hexadecimal digits have two
//     cases; UUIDs are written with and without dashes and braces. Unused bits of base64 (section 3.5) and percent-encoding do
//     not count, nor the prefixes of Ory Hydra and of UUIDs.
//
// Two tokens of one user may have the same digest, which leads to the right user. Two users would share a digest only if their
// tokens differ in nothing but case and punctuation: never if tokens are chosen by chance, since letters and digits alone
// have more than five of the six bits of each character. Short tokens, which may be numbers with separators, keep their
// punctuation. JWTs of two users differ in their claims.
func DigestOf(token string) Digest { return digestOf([]byte(token)) }

// prefixes begin refresh tokens of Ory Hydra, and UUIDs as some libraries read them: in either case, repeated, or not at all.
var prefixes = [][]byte{[]byte("ory_rt_"), []byte("urn:"), []byte("uuid:")}

// shortest is the length of the shortest token or part that is taken for chosen by chance: 128 bits in base64. Shorter ones may be
// numbers, of which the last character, or the place of a dot, is all that differs.
const shortest = 22

func digestOf(token []byte) Digest {
	var space [2048]byte
	token = unescape(append(space[:0], token...))
	if len(token) > 32 && bytes.IndexByte(token, ':') >= 0 { // Python's uuid takes these away wherever they stand
		token = bytes.ReplaceAll(bytes.ReplaceAll(token, prefixes[1], nil), prefixes[2], nil)
	}
	token = bytes.TrimFunc(token, func(r rune) bool { return r >= utf8.RuneSelf || !isBase64(byte(r)) }) //nolint:gosec // ASCII; the rest are such as quotes
	signed, encrypted := jwtForm(token)
	if signed > 0 {
		return sha256.Sum256(token[:signed])
	}
	for i := 0; i < len(prefixes); i++ {
		if n := len(prefixes[i]); len(token) > n && bytes.EqualFold(token[:n], prefixes[i]) {
			token, i = token[n:], -1
		}
	}
	if len(token) == 38 && token[9] == '-' && token[14] == '-' && token[19] == '-' && token[24] == '-' {
		token = token[1:37] // a UUID between any two characters, which Go's most common package takes for braces
	}
	count := 0 // of letters and digits
	for _, c := range token {
		if isAlphanumeric(c) {
			count++
		}
	}
	kept, rest := token[:0], token
	for i, more := 0, true; more && (i < 4 || !encrypted); i++ {
		var part []byte
		part, rest, more = bytes.Cut(rest, []byte("."))
		kept = appendUnified(kept, part, encrypted, count >= shortest)
		if more && count < shortest {
			kept = append(kept, '.')
		}
	}
	return sha256.Sum256(kept)
}

// jwtForm returns how much of a token is the header and the payload of a signed JWT, 0 if it is none, and whether it is an
// encrypted one, which the header says.
func jwtForm(token []byte) (signed int, encrypted bool) {
	first, rest, found := bytes.Cut(token, []byte("."))
	payload, _, _ := bytes.Cut(rest, []byte("."))
	var space [256]byte
	header, ok := decode(space[:0], first)
	if !found || !ok {
		return 0, false
	}
	names, values := [...]string{"enc"}, [1]span{}
	if _, isObject := find(header, names[:], values[:]); !isObject {
		return 0, false
	}
	if encrypted = !absent(values[0].in(header)); encrypted || len(payload) == 0 {
		return 0, encrypted
	}
	return len(first) + 1 + len(payload), false
}

// unescape decodes percent-encoding in place, as a server does that decodes a token once more.
func unescape(text []byte) []byte {
	out := text[:0]
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '%' && i+2 < len(text) && isHex(text[i+1]) && isHex(text[i+2]) {
			c = hexValue(text[i+1])<<4 | hexValue(text[i+2])
			i += 2
		}
		out = append(out, c)
	}
	return out
}

// hexValue returns the value of a hexadecimal digit.
func hexValue(c byte) byte {
	if isDigit(c) {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

func isAlphanumeric(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' }

func isBase64(c byte) bool { return isAlphanumeric(c) || strings.IndexByte("-_+/", c) >= 0 }

// appendUnified appends to dst what the writings of a part of a token have in common. dst may be what lies before the part.
func appendUnified(dst, part []byte, encrypted, long bool) []byte {
	if before, _, found := bytes.Cut(part, []byte("=")); found && (encrypted || len(before) >= shortest) {
		part = before // decoders may end there
	}
	n, last, hex := 0, byte(0), true // characters of base64, and the last of them
	for _, c := range part {
		if c == '=' || long && !isBase64(c) {
			continue
		}
		switch c {
		case '+':
			c = '-'
		case '/':
			c = '_'
		}
		n, last, hex = n+1, c, hex && (isHex(c) || c == '-')
		if isAlphanumeric(c) || !long {
			dst = append(dst, lower(c))
		}
	}
	unused, value := [4]int{2: 4, 3: 2}[n%4], strings.IndexByte(alphabet, last)
	if unused == 0 || n < shortest || hex || value < 0 {
		return dst
	}
	if isAlphanumeric(last) || !long {
		dst = dst[:len(dst)-1]
	}
	return append(dst, lower(alphabet[value>>unused<<unused]))
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// IsZero reports whether the digest stands for no token.
func (d Digest) IsZero() bool { return d == Digest{} }
