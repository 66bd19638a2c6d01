package tokenrequest

import (
	"unicode"
	"unicode/utf8"
)

// name is a judged parameter.
type name uint8

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
	unjudged = names
)

var nameTexts = [names]string{
	client: "client_id", clientSecret: "client_secret", grantType: "grant_type", username: "username",
	refreshToken: "refresh_token", code: "code", assertion: "client_assertion", assertionType: "client_assertion_type",
}

// exactName returns the judged parameter with that name, or unjudged.
func exactName(text []byte) name {
	switch string(text) {
	case "client_id":
		return client
	case "client_secret":
		return clientSecret
	case "grant_type":
		return grantType
	case "username":
		return username
	case "refresh_token":
		return refreshToken
	case "code":
		return code
	case "client_assertion":
		return assertion
	case "client_assertion_type":
		return assertionType
	}
	return unjudged
}

// findName returns the judged parameter with that decoded name. It returns an error if the name is
// not text, or if another server may read it as a judged parameter.
func findName(text []byte) (name, error) {
	n := exactName(text)
	if n != unjudged || isPlain(text) {
		return n, nil
	}
	if !isText(text) {
		return unjudged, refuse("The name of a parameter is not UTF-8 text, or holds control characters.")
	}
	if n = similarName(text); n != unjudged {
		return unjudged, refuse("The name of a parameter could be taken for " + nameTexts[n] + ".")
	}
	return unjudged, nil
}

// isPlain reports whether all servers read a name in the same way.
func isPlain(text []byte) bool {
	for _, c := range text {
		if (c < 'a' || c > 'z') && c != '_' && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// similarName returns the judged parameter that some server may read the name as. ASP.NET, and
// encoding/json for struct fields, ignore case. PHP turns a space, a dot and an unclosed bracket
// into an underscore, and ignores leading spaces. PHP, Rack and qs read brackets as an array
// element. Rack and qs skip leading brackets.
func similarName(text []byte) name {
	var base, whole [24]byte // the longest name has 21 bytes
	n, nBase, inElement := 0, 0, false
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		text = text[size:]
		c := folded(r)
		if n == 0 && (c == ' ' || c == '[' || c == ']') {
			continue
		}
		inElement = inElement || c == '['
		if c == ' ' || c == '.' || c == '[' {
			c = '_'
		}
		if n < len(whole) {
			whole[n] = c
			n++
		}
		if !inElement && nBase < len(base) {
			base[nBase] = c
			nBase++
		}
	}
	for _, candidate := range [...][]byte{whole[:n], base[:nBase]} {
		for {
			if found := exactName(candidate); found != unjudged {
				return found
			}
			last := len(candidate) - 1
			if last < 0 || candidate[last] != '_' && candidate[last] != ']' {
				break
			}
			candidate = candidate[:last]
		}
	}
	return unjudged
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
