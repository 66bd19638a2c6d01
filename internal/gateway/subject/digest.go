package subject

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"unicode/utf8"
)

// Digest identifies a refresh token: the SHA-256 of a normalized form of it. The zero Digest means
// no token.
type Digest [sha256.Size]byte

// NameDigest returns the digest of a text that is not a refresh token.
func NameDigest(text string) Digest { return sha256.Sum256([]byte(text)) }

// DigestOf returns the digest of a refresh token as it appears in a request, after form decoding.
//
// Many servers decode the token before they look it up, and so accept several spellings of it. All
// spellings of a token have the same digest. Otherwise each spelling would be a token with an
// unknown user.
//
//   - For a JWT (RFC 7515, RFC 7516), the digest covers everything except the part that
//     authenticates it, because servers verify the rest byte for byte. For a signed JWT this is the
//     header and the payload, so any spelling of the signature, and anything after it, is ignored.
//     For an encrypted JWT it is everything except the tag, and each part is normalized as below.
//   - For any other token, the digest covers the letters and digits, in lower case. Base64 decoders
//     (RFC 4648) accept both alphabets, missing padding, and ignore other characters. Hexadecimal
//     digits have two cases. UUIDs are written with and without dashes and braces. The unused bits
//     of base64 (section 3.5), percent-encoding, and the prefixes of Ory Hydra and of UUIDs are
//     ignored too.
//
// Two tokens of one user may have the same digest, which leads to the right user. Two users share a
// digest only if their tokens differ only in case and punctuation. That does not happen with random
// tokens, because letters and digits alone carry more than five of the six bits of each character.
// Short tokens, which may be numbers with separators, keep their punctuation. JWTs of two users
// differ in their claims.
func DigestOf(token string) Digest { return digestOf([]byte(token)) }

// prefixes are the prefixes of refresh tokens of Ory Hydra, and of UUIDs as some libraries read
// them. They may appear in any case, repeatedly, or not at all.
var prefixes = [][]byte{[]byte("ory_rt_"), []byte("urn:"), []byte("uuid:")}

// shortest is the minimum length of a token or part that is treated as random: 128 bits in base64.
// A shorter one may be a number, and may differ from another one only in the last character or the
// place of a dot.
const shortest = 22

func digestOf(token []byte) Digest {
	var space [2048]byte
	token = unescape(append(space[:0], token...))
	if len(token) > 32 && bytes.IndexByte(token, ':') >= 0 { // Python's uuid removes these anywhere
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
		token = token[1:37] // a UUID between any two characters, which Go's most common package treats as braces
	}
	count := 0 // letters and digits
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

// jwtForm returns the length of the header and payload if the token is a signed JWT, otherwise 0,
// and whether it is an encrypted JWT, judging by the header.
func jwtForm(token []byte) (signed int, encrypted bool) {
	first, rest, found := bytes.Cut(token, []byte("."))
	payload, _, _ := bytes.Cut(rest, []byte("."))
	header, ok := decode(first)
	if !found || !ok {
		return 0, false
	}
	values, _, isObject := find(header, "enc")
	if !isObject {
		return 0, false
	}
	if encrypted = !absent(values[0]); encrypted || len(payload) == 0 {
		return 0, encrypted
	}
	return len(first) + 1 + len(payload), false
}

// unescape decodes percent-encoding in place, like a server that decodes a token twice.
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

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

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

// appendUnified appends the normalized form of a part of a token to dst. dst may share memory with
// text before the part.
func appendUnified(dst, part []byte, encrypted, long bool) []byte {
	if before, _, found := bytes.Cut(part, []byte("=")); found && (encrypted || len(before) >= shortest) {
		part = before // decoders may stop there
	}
	n, last, hex := 0, byte(0), true // the number of base64 characters, and the last one
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

// IsZero reports whether the digest is zero, which means no token.
func (d Digest) IsZero() bool { return d == Digest{} }
