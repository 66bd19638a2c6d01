package tokenrequest

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// params are the decoded parameters of one request.
type params struct {
	values    [names]string // of the checked parameters; empty: omitted
	given     [names]bool   // also set without a value
	passwords []string      // servers differ in the one they use
	onlyASCII bool          // in this charset, other values would not be UTF-8

	basic, basicSecret string // from the Authorization field; the secret as sent
}

// set stores a value. A repeated parameter is an error, even if it was empty before, because
// servers differ in which one they use.
func (p *params) set(n name, value string) error {
	if p.given[n] {
		return refuse("The parameter " + nameTexts[n] + " is repeated.")
	}
	p.given[n], p.values[n] = true, value
	return nil
}

// check validates the values, except the secret.
func (p *params) check() error {
	for n, value := range p.values {
		if value == "" || name(n) == clientSecret {
			continue
		}
		if p.onlyASCII && strings.ContainsFunc(value, func(r rune) bool { return r >= utf8.RuneSelf }) {
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
func checkValue(n name, value string) error {
	bounded := n == client || n == grantType || n == username
	switch {
	case bounded && len(value) > maxName:
		return refuse("The parameter " + nameTexts[n] + " is longer than 255 bytes.")
	case !isText(value):
		return refuse("The parameter " + nameTexts[n] + " is not valid UTF-8, or contains control characters.")
	case n != client && n != username && strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }):
		return refuse("The parameter " + nameTexts[n] + " contains invalid characters (RFC 6749 appendix A).")
	case n == grantType && isGrantInUpperCase(value):
		return refuse("The parameter grant_type has uppercase letters.")
	case n == grantType && strings.Contains(value, " "), n != username && strings.TrimSpace(value) != value:
		return refuse("The parameter " + nameTexts[n] + " has a space at an invalid position.")
	}
	return nil
}

// isGrantInUpperCase reports whether a grant is a known one with upper-case letters. Older versions
// of fosite ignore the case. Unknown grants may have any case.
func isGrantInUpperCase(grant string) bool {
	lower := strings.ToLower(grant)
	known := slices.Contains([]string{"client_credentials", "password", "refresh_token", "authorization_code"}, lower) ||
		strings.HasPrefix(lower, "urn:ietf:") || strings.HasPrefix(lower, "urn:openid:")
	return lower != grant && known
}

// isText reports whether s is UTF-8 without control characters.
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl) }
