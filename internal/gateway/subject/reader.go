package subject

import (
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"
)

// MaxAnswer is the maximum size in bytes of an answer that is read.
const MaxAnswer = 1 << 20

// DefaultClaim is the user ID claim of every OpenID provider (OpenID Connect Core section 2).
const DefaultClaim = "sub"

// Claims holds the contents of a successful answer.
type Claims struct {
	// Subject is the user. If it is empty, Reason says why.
	Subject string
	Reason  Reason
	// Refresh is the digest of the new refresh token, or zero if the answer has no token. It may be
	// set although Subject is empty, because many servers answer a refresh without an id_token.
	Refresh Digest
	// Lifetime is the lifetime of the refresh token, or zero if the answer does not state it. It is
	// at most ten years.
	Lifetime time.Duration
}

// Expires returns the expiry of the refresh token for [Memory.Put], if the answer came at now. It
// returns the zero time if the answer does not state a lifetime.
func (c *Claims) Expires(now time.Time) time.Time {
	if c.Lifetime == 0 {
		return time.Time{}
	}
	return now.Add(c.Lifetime)
}

// A Reader reads the answers of a token endpoint. It is safe for concurrent use.
type Reader struct{ claim [1]string }

// NewReader returns a Reader that finds the user in the claim, for example preferred_username. An
// empty claim selects [DefaultClaim]. It returns an error if the name is not a valid claim name.
func NewReader(claim string) (*Reader, error) {
	if claim == "" {
		claim = DefaultClaim
	}
	if !fit([]byte(claim)) {
		return nil, fmt.Errorf("read claim name: %w", errUnfit)
	}
	return &Reader{[1]string{claim}}, nil
}

var errUnfit = errors.New("needs 1 to 255 bytes of UTF-8, without control characters or a space at its start")

// The members of an answer that are read. Keycloak and other servers send the lifetimes.
const (
	idToken = iota
	accessToken
	refreshToken
	refreshExpires
	refreshTokenExpires
	members
)

var memberNames = [members]string{"id_token", "access_token", "refresh_token", "refresh_expires_in", "refresh_token_expires_in"}

// Read returns the contents of a successful token answer (RFC 6749 section 5.1). It looks up the
// claim in the id_token. If there is no id_token, or it lacks the claim, Read looks in the access
// token, if that is a JWT. A null member or claim counts as missing.
//
// The user is a string, or a whole number as written. A fraction, an exponent, -0 and other types
// are rejected, because one user could then be written in two ways. Read also rejects a string that
// is empty, longer than 255 bytes, not UTF-8, contains a control character or U+FFFD (which may
// replace a character that a server could not write), or begins with a space, which is reserved for
// keys of package ratelimit.
//
// Read does not retain body.
func (r *Reader) Read(body []byte) Claims {
	var values [members]span
	if len(body) > MaxAnswer {
		return Claims{Reason: MalformedAnswer}
	}
	switch twice, ok := find(body, memberNames[:], values[:]); {
	case !ok:
		return Claims{Reason: MalformedAnswer}
	case twice:
		return Claims{Reason: AmbiguousAnswer}
	}
	var c Claims
	c.Subject, c.Reason = r.subject(values[idToken].in(body), values[accessToken].in(body))
	if token, ok := text(values[refreshToken].in(body)); ok && visible(token) {
		c.Refresh = digestOf(token)
		if c.Lifetime = lifetime(values[refreshExpires].in(body)); c.Lifetime == 0 {
			c.Lifetime = lifetime(values[refreshTokenExpires].in(body))
		}
	}
	return c
}

// subject returns the user from the raw JSON text of the two tokens.
func (r *Reader) subject(id, access []byte) (string, Reason) {
	missing := NoJWT
	if !absent(id) {
		name, reason := r.claimOf(id)
		switch reason {
		case NoJWT:
			return "", BadIDToken
		case NoClaim:
			missing = NoClaim
		default:
			return name, reason
		}
	}
	name, reason := r.claimOf(access)
	if reason == NoJWT {
		reason = missing
	}
	return name, reason
}

// claimOf returns the user in the claim of a token, or the reason why it is unknown, such as
// [NoJWT].
func (r *Reader) claimOf(raw []byte) (string, Reason) {
	token, ok := text(raw)
	if !ok {
		return "", NoJWT
	}
	var buffer [2048]byte
	payload, ok := payloadOf(buffer[:0], token)
	if !ok {
		return "", NoJWT
	}
	var at [1]span
	twice, ok := find(payload, r.claim[:], at[:])
	switch {
	case !ok:
		return "", NoJWT
	case twice:
		return "", AmbiguousClaim
	}
	return userOf(at[0].in(payload))
}

// userOf returns the user from the raw JSON text of a claim, or the reason why it is not a user.
func userOf(value []byte) (string, Reason) {
	switch {
	case absent(value):
		return "", NoClaim
	case isInteger(value) && fit(value):
		return string(value), Known
	}
	name, ok := text(value)
	switch {
	case !ok:
		return "", ClaimType
	case !fit(name):
		return "", UnfitSubject
	}
	return string(name), Known
}

// isInteger reports whether the raw JSON text is a whole number without fraction, exponent and
// negative zero, so it has only one spelling.
func isInteger(raw []byte) bool {
	digits := raw
	if raw[0] == '-' {
		digits = raw[1:]
	}
	for _, c := range digits {
		if !isDigit(c) {
			return false
		}
	}
	return string(raw) != "-0"
}

// maxSubject is the maximum length of a subject in bytes.
const maxSubject = 255

// Fit reports whether a name can be a user that [Reader.Read] returns.
func Fit(name string) bool { return fit([]byte(name)) }

// fit implements [Fit].
func fit(name []byte) bool {
	if len(name) == 0 || len(name) > maxSubject || name[0] == ' ' {
		return false
	}
	for at := 0; at < len(name); {
		r, size := utf8.DecodeRune(name[at:])
		if r == utf8.RuneError || unicode.IsControl(r) {
			return false
		}
		at += size
	}
	return true
}

// visible reports whether a refresh token has only the characters of RFC 6749 appendix A.17.
// Clients may send other characters in different ways.
func visible(token []byte) bool {
	for _, c := range token {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return len(token) > 0
}

// lifetime returns the number of seconds in the raw JSON text of a number, or of a string with a
// number. It returns 0 for anything else. Keycloak sends 0 for a token without expiry.
func lifetime(raw []byte) time.Duration {
	const longest = 10 * 365 * 24 * time.Hour
	if s, ok := text(raw); ok {
		raw = s
	}
	if len(raw) == 0 || !isDigit(raw[0]) {
		return 0
	}
	seconds, err := strconv.ParseInt(string(raw), 10, 64)
	if errors.Is(err, strconv.ErrRange) {
		return longest
	}
	if err != nil {
		return 0
	}
	return time.Duration(min(seconds, int64(longest/time.Second))) * time.Second
}
