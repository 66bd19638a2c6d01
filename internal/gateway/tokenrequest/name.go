package tokenrequest

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// name is a checked parameter.
type name int

const (
	client name = iota
	clientSecret
	grantType
	username
	refreshToken
	code
	assertion
	assertionType
	names
	other name = -1
)

var nameTexts = [names]string{
	client: "client_id", clientSecret: "client_secret", grantType: "grant_type", username: "username",
	refreshToken: "refresh_token", code: "code", assertion: "client_assertion", assertionType: "client_assertion_type",
}

// exactName returns the checked parameter with that name, or other.
func exactName(text string) name { return name(slices.Index(nameTexts[:], text)) }

// findName returns the checked parameter with that decoded name. It returns an error if the name is
// not text, or if another server may read it as a checked parameter.
func findName(text string) (name, error) {
	n := exactName(text)
	if n != other || isPlain(text) {
		return n, nil
	}
	if !isText(text) {
		return other, refuse("The name of a parameter is not valid UTF-8, or contains control characters.")
	}
	if n = similarName(text); n != other {
		return other, refuse("The name of a parameter could be taken for " + nameTexts[n] + ".")
	}
	return other, nil
}

// isPlain reports whether all servers read a name in the same way.
func isPlain(text string) bool {
	return strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

// similarName returns the checked parameter that some server may read the name as. ASP.NET, and
// encoding/json for struct fields, ignore case. PHP turns a space, a dot and an unclosed bracket
// into an underscore, and ignores leading spaces. PHP, Rack and qs read brackets as an array
// element. Rack and qs skip leading brackets.
func similarName(text string) name {
	text = strings.Map(func(r rune) rune { return rune(folded(r)) }, text)
	text = strings.TrimLeft(text, " []")
	base, _, _ := strings.Cut(text, "[")
	for _, candidate := range []string{text, base} {
		candidate = strings.NewReplacer(" ", "_", ".", "_", "[", "_").Replace(candidate)
		if n := exactName(strings.TrimRight(candidate, "_]")); n != other {
			return n
		}
	}
	return other
}

// folded returns the ASCII character that a rune equals if case is ignored, or 0xff if there is
// none.
func folded(r rune) byte {
	if r >= utf8.RuneSelf {
		if unicode.IsSpace(r) || r == '\ufeff' {
			return ' '
		}
		if r = unicode.SimpleFold(r); r >= utf8.RuneSelf { // ſ folds to s, and the Kelvin sign to k
			return 0xff
		}
	}
	if r >= 'A' && r <= 'Z' {
		r += 'a' - 'A'
	}
	return byte(r) //nolint:gosec // below 0x80
}
