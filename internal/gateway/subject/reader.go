package subject

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// MaxAnswer is the maximum size in bytes of an answer that is read.
const MaxAnswer = 1 << 20

// DefaultClaim is the user ID claim of every OpenID provider (OpenID Connect Core section 2).
const DefaultClaim = "sub"

// Answer holds the contents of an answer of a token endpoint (RFC 6749 sections 5.1 and 5.2).
type Answer struct {
	// Issued is set if the answer has an access token, Failed if it has an error instead. Some
	// servers use the status 200 for both. Error and Description are the error and the
	// error_description of a failed request.
	Issued, Failed     bool
	Error, Description string
	// Subject is the user. If it is empty, Reason says why.
	Subject string
	Reason  Reason
	// Refresh is the digest of the new refresh token, or zero if the answer has no token. It may be
	// set although Subject is empty, because many servers answer a refresh without an id_token.
	Refresh Digest
	// Lifetime is the lifetime of the refresh token, or zero if the answer does not state it. It is
	// at most ten years.
	Lifetime time.Duration

	access []byte // the access token; nil: none, or it is ambiguous
}

// Expires returns the expiry of the refresh token for [Memory.Put], if the answer came at now. It
// returns the zero time if the answer does not state a lifetime.
func (a *Answer) Expires(now time.Time) time.Time {
	if a.Lifetime == 0 {
		return time.Time{}
	}
	return now.Add(a.Lifetime)
}

// MaxToken is the maximum length in bytes of an access token from [Answer.AccessToken].
const MaxToken = 16 << 10

// AccessToken returns the access token of an answer, for the introspection endpoint. It returns an
// empty string if there is no token, if it contains characters that RFC 6749 appendix A.12 does not
// allow, or if it is longer than [MaxToken].
func (a *Answer) AccessToken() string {
	if !visible(a.access) || len(a.access) > MaxToken {
		return ""
	}
	return string(a.access)
}

// A Reader reads the answers of a token endpoint. It is safe for concurrent use.
type Reader struct{ claim string }

// NewReader returns a Reader that finds the user in the claim, for example preferred_username. An
// empty claim selects [DefaultClaim]. It returns an error if the name is not a valid claim name.
func NewReader(claim string) (*Reader, error) {
	if claim == "" {
		claim = DefaultClaim
	}
	if !Fit(claim) {
		return nil, fmt.Errorf("read claim name: %w", errUnfit)
	}
	return &Reader{claim}, nil
}

var errUnfit = errors.New("must have 1 to 255 bytes of UTF-8, without control characters or a leading space")

// The members of an answer that are read. Keycloak and other servers send the lifetimes.
const (
	idToken = iota
	accessToken
	refreshToken
	refreshExpires
	refreshTokenExpires
	failure
	failureText
)

var memberNames = []string{
	"id_token", "access_token", "refresh_token", "refresh_expires_in", "refresh_token_expires_in", "error", "error_description",
}

// Read returns the contents of a token answer. It looks up the claim in the id_token. If there is
// no id_token, or it lacks the claim, Read looks in the access token, if that is a JWT. A null
// member or claim counts as missing.
//
// The user is a string, or a whole number as written. A fraction, an exponent, -0 and other types
// are rejected, because one user could then be written in two ways. Read also rejects a string that
// is empty, longer than 255 bytes, not UTF-8, contains a control character or U+FFFD (which may
// replace a character that a server could not write), or begins with a space, which is reserved for
// keys of package ratelimit.
//
// The Answer refers to body.
func (r *Reader) Read(body []byte) Answer {
	if len(body) > MaxAnswer {
		return Answer{Reason: MalformedAnswer}
	}
	values, twice, ok := find(body, memberNames...)
	if !ok {
		return Answer{Reason: MalformedAnswer}
	}
	a := Answer{Issued: !absent(values[accessToken])}
	if a.Failed = !a.Issued && !absent(values[failure]); a.Failed {
		code, _ := text(values[failure])
		description, _ := text(values[failureText])
		a.Error, a.Description = string(code), string(description)
	}
	if twice {
		a.Reason = AmbiguousAnswer
		return a
	}
	a.access, _ = text(values[accessToken])
	a.Subject, a.Reason = r.subject(values[idToken], values[accessToken])
	if token, ok := text(values[refreshToken]); ok && visible(token) {
		a.Refresh = digestOf(token)
		if a.Lifetime = lifetime(values[refreshExpires]); a.Lifetime == 0 {
			a.Lifetime = lifetime(values[refreshTokenExpires])
		}
	}
	return a
}

// ReadIntrospection returns the user in the claim of an introspection answer (RFC 7662 section
// 2.2), or the reason why the user is unknown: IntrospectionFailed if the body is not an
// introspection answer, IntrospectionInactive if the token is not active, otherwise a reason about
// the claim. It reads no other member of the answer.
func (r *Reader) ReadIntrospection(body []byte) (user string, reason Reason) {
	values, twice, ok := find(body, "active", r.claim)
	switch state := string(values[0]); {
	case !ok || state != "true" && state != "false":
		return "", IntrospectionFailed
	case twice:
		return "", AmbiguousClaim
	case state == "false":
		return "", IntrospectionInactive
	}
	return userOf(values[1])
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
	payload, ok := payloadOf(token)
	if !ok {
		return "", NoJWT
	}
	values, twice, ok := find(payload, r.claim)
	switch {
	case !ok:
		return "", NoJWT
	case twice:
		return "", AmbiguousClaim
	}
	return userOf(values[0])
}

// encoding is the encoding of the parts of a JWT (RFC 7515 section 2).
var encoding = base64.RawURLEncoding.Strict()

// payloadOf returns the payload of a signed JWT in compact form (RFC 7515 section 3.1). It reports
// whether the token has that form: three parts, and the first is a JSON object. It verifies nothing
// and does not parse the payload.
func payloadOf(token []byte) ([]byte, bool) {
	parts := bytes.Split(token, []byte("."))
	if len(parts) != 3 {
		return nil, false
	}
	header, ok := decode(parts[0])
	if !ok || !Members(header, func(_, _ []byte) bool { return true }) {
		return nil, false
	}
	return decode(parts[1])
}

// decode decodes a part of a JWT. It reports whether the part is valid.
func decode(part []byte) ([]byte, bool) {
	if bytes.ContainsAny(part, "\r\n") { // package base64 would ignore them
		return nil, false
	}
	decoded, err := encoding.AppendDecode(nil, part)
	return decoded, err == nil
}

// userOf returns the user from the raw JSON text of a claim, or the reason why it is not a user.
func userOf(value []byte) (string, Reason) {
	switch {
	case absent(value):
		return "", NoClaim
	case isInteger(value) && Fit(string(value)):
		return string(value), Known
	}
	name, ok := text(value)
	switch {
	case !ok:
		return "", ClaimType
	case !Fit(string(name)):
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
func Fit(name string) bool {
	return name != "" && len(name) <= maxSubject && name[0] != ' ' &&
		!strings.ContainsFunc(name, func(r rune) bool { return r == utf8.RuneError || unicode.IsControl(r) })
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
