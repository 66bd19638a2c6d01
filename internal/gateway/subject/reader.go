package subject

import (
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"
)

// MaxAnswer is the size in bytes of the largest answer that is read.
const MaxAnswer = 1 << 20

// DefaultClaim names the user by what every OpenID provider has (OpenID Connect Core section 2).
const DefaultClaim = "sub"

// Claims is what a successful answer proves.
type Claims struct {
	// Subject is the user. It is empty if that is not known, and Reason is why.
	Subject string
	Reason  Reason
	// Refresh is the digest of the new refresh token. It is zero if there is none. An answer can have
	// one although its subject is not known: many servers answer a refresh without an id_token.
	Refresh Digest
	// Lifetime is how long the refresh token lasts, as far as the answer says; otherwise zero. It is at
	// most ten years.
	Lifetime time.Duration
}

// Expires returns when the refresh token of an answer of that time expires, as [Memory.Put] takes it:
// the zero time if the answer does not say.
func (c *Claims) Expires(now time.Time) time.Time {
	if c.Lifetime == 0 {
		return time.Time{}
	}
	return now.Add(c.Lifetime)
}

// A Reader reads the answers of a token endpoint. It may be used by many goroutines at once.
type Reader struct{ claim [1]string }

// NewReader returns a reader that finds the user in the claim, such as preferred_username; "" is
// [DefaultClaim]. The error says why there can be no such claim.
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

// The members of an answer that matter. Those of the lifetime are of Keycloak, and of others.
const (
	idToken = iota
	accessToken
	refreshToken
	refreshExpires
	refreshTokenExpires
	members
)

var memberNames = [members]string{"id_token", "access_token", "refresh_token", "refresh_expires_in", "refresh_token_expires_in"}

// Read returns what the body of a successful token answer (RFC 6749 section 5.1) proves. The claim is
// looked up in the id_token; if that is not there or has no such claim, in the access token, if that is
// a JWT. A member or a claim that is null counts as not there.
//
// The user is a string, or a whole number, as written. A fraction, an exponent, -0, or another type is
// none: one user could be written in two ways. Nor is a string that is empty, longer than 255 bytes or
// not UTF-8, that has a control character or U+FFFD, which may stand for what a server could not write,
// or that begins with a space, which is reserved for the keys of package ratelimit.
//
// Read keeps nothing of body.
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

// subject returns the user that the raw text of the two tokens names.
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

// claimOf returns the claim of a token as a user, or [NoJWT] or another reason why there is none.
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

// userOf returns the user that the raw text of a claim names, or why it names none.
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

// isInteger reports whether the raw text of a JSON value is a whole number, written in the one way
// without fraction and exponent.
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

// maxSubject is the length in bytes of the longest subject.
const maxSubject = 255

// Fit reports whether a name can be that of a user: one that [Reader.Read] returns.
func Fit(name string) bool { return fit([]byte(name)) }

// fit reports whether a name can be that of a user, see [Reader.Read].
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

// visible reports whether a refresh token has the characters of one (RFC 6749 appendix A.17): of others
// it is not certain how a client sends them.
func visible(token []byte) bool {
	for _, c := range token {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return len(token) > 0
}

// lifetime returns the seconds that the raw text of a number says, or of a string with one, and 0 for
// anything else. Keycloak writes 0 for a token without an end.
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
