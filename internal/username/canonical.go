package username

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/secure/precis"
)

// MaxLength bounds a username in bytes, as typed and in its canonical form; it becomes part of every
// counter key.
const MaxLength = 128

// maxRounds is how often the profile is applied until nothing changes: once and up to three more times
// (RFC 8264 section 7).
const maxRounds = 4

// errUnfit is the reason for names that PRECIS refuses. The library's own do not help a person.
var errUnfit = errors.New("username: holds a character that a username cannot have, " +
	"such as a space, a symbol or an invisible one, or mixes directions of writing")

// Canonical returns the canonical form of a name, which has a canonical form of its own: itself. Names
// with the same one are the same name. The error says, to a person, why this cannot be a name.
func Canonical(name string) (string, error) {
	for range maxRounds {
		switch {
		case name == "" || len(name) > MaxLength:
			return "", fmt.Errorf("username: needs 1 to %d bytes", MaxLength)
		case !utf8.ValidString(name):
			return "", errors.New("username: is not valid UTF-8")
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

// New returns the canonical form of a name for a new user: one that is [Unmixed].
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

// Stored returns the name in the records about a user who is named like this: the canonical form. A name
// without one is returned as it is: a user of a gateway's upstream may have it.
func Stored(name string) string {
	if canonical, err := Canonical(name); err == nil {
		return canonical
	}
	return name
}

// Check returns what is wrong with the name of a user, here or at a gateway's upstream; nil if nothing is.
func Check(name string) error {
	switch {
	case name == "" || len(name) > MaxLength:
		return fmt.Errorf("username: needs 1 to %d bytes", MaxLength)
	case !utf8.ValidString(name):
		return errors.New("username: is not valid UTF-8")
	case strings.TrimSpace(name) != name:
		return errors.New("username: begins or ends with white space")
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("username: holds a character that cannot be printed")
	}
	return nil
}
