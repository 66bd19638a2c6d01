package grants

import (
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"

	"oauth-server/internal/accounts"
	"oauth-server/internal/secret"
)

// A refresh token is 72 characters of base64url:
//
//	secret of its family  generation           MAC
//	32 bytes              4 bytes, big-endian  18 bytes of HMAC-SHA-256 over the 48 characters before it
//
// The secret's digest is the key of the family's record. The MAC is made with the key that all
// instances share, so a token that no instance issued is refused without reading the store.
const (
	secretLength = 32
	bodyLength   = secretLength + 4
	bodyText     = bodyLength / 3 * 4 // characters; no bits are left over
	tokenText    = bodyText + 24

	refreshTokenMAC = "refresh token" // purpose of the derived MAC
)

// encoding is strict about trailing bits, so each content has only one encoding.
var encoding = base64.RawURLEncoding.Strict()

// refreshToken is the content of a refresh token.
type refreshToken struct {
	secret     string // of the family: a code or random; 43 characters
	generation uint32 // 1 for the family's first refresh token; 0 for the code or secret that it began with
}

// digest returns the digest under which the family is stored.
func (t refreshToken) digest() secret.Digest { return secret.DigestOf(t.secret) }

// next returns the successor of t.
func (t refreshToken) next() refreshToken { return refreshToken{t.secret, t.generation + 1} }

// An authorization code is 43 characters of base64url: 20 random bytes and 12 bytes of HMAC-SHA-256
// over them. The MAC uses the key of refresh tokens with another purpose. The code can be the
// secret of a family.
const (
	codeRandom = 20
	codeMAC    = "authorization code"
)

// SealCode returns the authorization code for 20 random bytes. A [Service] refuses codes sealed
// with a different Deriver. SealCode is exported for programs that write codes to a store
// themselves, such as benchmarks.
func SealCode(d accounts.Deriver, random []byte) string {
	mac, _ := encoding.DecodeString(d.Derive(codeMAC, string(random))) // Derive returns base64url
	return encoding.EncodeToString(append(random[:codeRandom:codeRandom], mac[:secretLength-codeRandom]...))
}

// isCode reports whether one of the instances issued the code.
func (s *Service) isCode(text string) bool {
	raw, err := encoding.DecodeString(text)
	return err == nil && len(raw) == secretLength && subtle.ConstantTimeCompare([]byte(SealCode(s.opts.Deriver, raw[:codeRandom])), []byte(text)) == 1
}

// seal returns the token as sent to the client.
func (s *Service) seal(t refreshToken) string {
	raw, _ := encoding.DecodeString(t.secret) // it is a code or random, so it decodes
	body := encoding.EncodeToString(binary.BigEndian.AppendUint32(raw[:secretLength:secretLength], t.generation))
	return body + s.tokenMAC(body)
}

// unseal returns the content of a token. ok is false unless one of the instances issued it.
func (s *Service) unseal(text string) (t refreshToken, ok bool) {
	if len(text) != tokenText {
		return t, false
	}
	body, mac := text[:bodyText], text[bodyText:]
	if subtle.ConstantTimeCompare([]byte(mac), []byte(s.tokenMAC(body))) == 0 {
		return t, false
	}
	raw, err := encoding.DecodeString(body)
	if err != nil { // the MAC is valid, but the body is not base64url
		return t, false
	}
	return refreshToken{encoding.EncodeToString(raw[:secretLength]), binary.BigEndian.Uint32(raw[secretLength:])}, true
}

func (s *Service) tokenMAC(body string) string {
	return s.opts.Deriver.Derive(refreshTokenMAC, body)[:tokenText-bodyText]
}
