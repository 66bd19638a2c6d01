package tokenrequest

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// params are the decoded judged parameters of one body.
type params struct {
	values [names][]byte // slices of the body or of space; empty: omitted
	given  [names]bool   // also set without a value
	space  []byte        // holds decoded values

	onlyASCII bool // in this charset, other values would not be UTF-8
}

// set stores a value. A repeated parameter is an error, even if it was empty before, because
// servers differ in which one they use.
func (p *params) set(n name, value []byte) error {
	if p.given[n] {
		return refuse("The parameter " + nameTexts[n] + " is repeated.")
	}
	p.given[n] = true
	p.values[n] = value
	return nil
}

// check validates the values, except the secret.
func (p *params) check() error {
	for n, value := range p.values {
		if len(value) == 0 || name(n) == clientSecret {
			continue
		}
		if p.onlyASCII && bytes.IndexFunc(value, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
			return refuse("The parameter " + nameTexts[n] + " is not ASCII, and the charset of the body is not UTF-8.")
		}
		if err := checkValue(name(n), value); err != nil {
			return err
		}
	}
	return nil
}

// checkValue validates one value. It refuses surrounding spaces, because some servers ignore them,
// and spaces in grant_type, because fosite reads it as a list.
func checkValue(n name, value []byte) error {
	bounded := n == client || n == grantType || n == username
	switch {
	case bounded && len(value) > maxName:
		return refuse("The parameter " + nameTexts[n] + " is longer than 255 bytes.")
	case !isText(value):
		return refuse("The parameter " + nameTexts[n] + " is not UTF-8 text, or holds control characters.")
	case n != client && n != username && bytes.IndexFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) >= 0:
		return refuse("The parameter " + nameTexts[n] + " holds characters that none may have (RFC 6749 appendix A).")
	case n == grantType && isGrantInUpperCase(value):
		return refuse("The parameter grant_type has letters in upper case.")
	case n == grantType && bytes.IndexByte(value, ' ') >= 0, n != username && isPadded(value):
		return refuse("The parameter " + nameTexts[n] + " holds a space where none may be.")
	}
	return nil
}

// isGrantInUpperCase reports whether a grant is a known one with upper-case letters. Older versions
// of fosite ignore the case. Unknown grants may have any case.
func isGrantInUpperCase(grant []byte) bool {
	lower := bytes.ToLower(grant)
	if bytes.Equal(lower, grant) {
		return false
	}
	switch string(lower) {
	case "client_credentials", "password", "refresh_token", "authorization_code":
		return true
	}
	return bytes.HasPrefix(lower, []byte("urn:ietf:")) || bytes.HasPrefix(lower, []byte("urn:openid:"))
}

// isText reports whether b is UTF-8 without control characters.
func isText(b []byte) bool {
	for i, c := range b {
		if c >= utf8.RuneSelf {
			return utf8.Valid(b[i:]) && bytes.IndexFunc(b[i:], unicode.IsControl) < 0
		}
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

func isPadded(b []byte) bool {
	first, _ := utf8.DecodeRune(b)
	last, _ := utf8.DecodeLastRune(b)
	return unicode.IsSpace(first) || unicode.IsSpace(last)
}
