package username

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/secure/precis"

	"oauth-server/internal/strict/fielderr"
)

// MaxLength bounds a username in bytes, both as typed and in canonical form, because it becomes
// part of every counter key.
const MaxLength = 128

// maxRounds is how often the profile is applied until nothing changes: once and up to three more
// times (RFC 8264 section 7).
const maxRounds = 4

// errUnfit is the error for names that PRECIS refuses. The library's own errors do not help a user.
var errUnfit = invalid("contains an invalid character, such as a space, a symbol or an invisible one, or mixes writing directions")

// invalid returns the error for a name.
func invalid(format string, args ...any) error {
	return fielderr.Errors{{Path: "username", Message: fmt.Sprintf(format, args...)}}
}

// Canonical returns the canonical form of a name. The canonical form of a canonical name is the
// name itself. Two names with the same canonical form are the same name. The error tells a user why
// the name is not allowed. All errors of this package are [fielderr.Errors] of the field username.
func Canonical(name string) (string, error) {
	for range maxRounds {
		switch {
		case name == "" || len(name) > MaxLength:
			return "", invalid("must have 1 to %d bytes", MaxLength)
		case !utf8.ValidString(name):
			return "", invalid("is not valid UTF-8")
		}
		mapped, err := precis.UsernameCaseMapped.String(name)
		if err != nil {
			return "", errUnfit
		}
		if mapped == name {
			return name, nil
		}
		name = mapped
	}
	return "", errUnfit
}

// New returns the canonical form of a name for a new user, which must also be [Unmixed].
func New(name string) (string, error) {
	canonical, err := Canonical(name)
	if err == nil {
		err = Unmixed(canonical)
	}
	if err != nil {
		return "", err
	}
	return canonical, nil
}

// Stored returns the name to look for in stored records about a user: the canonical form. A name
// without a canonical form is returned unchanged, because a user of a gateway's upstream may have
// it.
func Stored(name string) string {
	if canonical, err := Canonical(name); err == nil {
		return canonical
	}
	return name
}

// Check returns why the name is not valid for a user, of this server or of a gateway's upstream, or
// nil.
func Check(name string) error {
	switch {
	case name == "" || len(name) > MaxLength:
		return invalid("must have 1 to %d bytes", MaxLength)
	case !utf8.ValidString(name):
		return invalid("is not valid UTF-8")
	case strings.TrimSpace(name) != name:
		return invalid("begins or ends with white space")
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return invalid("contains an unprintable character")
	}
	return nil
}
