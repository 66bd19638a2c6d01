package grants

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"oauth-server/internal/secret"
	"oauth-server/internal/username"
)

// MaxUsernameLength bounds a username in bytes.
const MaxUsernameLength = username.MaxLength

// ValidateUsername returns an error that says what is wrong with the name, nil if a user of this or an
// earlier release can have it. Earlier releases compared names byte for byte, and refused invisible
// characters only. What a new name has to be is said by package username.
func ValidateUsername(name string) error {
	switch {
	case name == "" || len(name) > MaxUsernameLength:
		return fmt.Errorf("username: needs 1 to %d bytes", MaxUsernameLength)
	case !utf8.ValidString(name):
		return errors.New("username: is not valid UTF-8")
	case strings.TrimSpace(name) != name:
		return errors.New("username: begins or ends with white space")
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("username: holds a character that cannot be printed")
	}
	return nil
}

// typedName is a username as a person typed it, and its canonical form.
type typedName struct {
	given, canonical string // canonical is empty if only users of earlier releases can have the name, or none
}

func typed(name string) typedName {
	canonical, err := username.Canonical(name)
	if err != nil {
		return typedName{given: name}
	}
	return typedName{name, canonical}
}

// key is what attempts with the name count and wait under, before it is known whose it is. All ways to
// type a name have the same one. It is never longer than a digest or a username, and no key of a name
// without a canonical form is a canonical name or, of one that no user can have, a name of a user.
func (n typedName) key() string {
	switch {
	case n.canonical != "":
		return n.canonical
	case ValidateUsername(n.given) != nil:
		return " " + secret.DigestOf(n.given).String()
	}
	return n.given
}

// wrong is the error for a wrong name or password.
func (n typedName) wrong() error {
	if n.canonical == "" {
		return fmt.Errorf("%w: %w", ErrSignIn, ErrUsername)
	}
	return ErrSignIn
}

// userTyped returns the user whom a person means who typed the name: one who is stored under exactly
// that name, or else under its canonical form. The two differ for users of earlier releases only; those
// sign in as they did. What is read depends on the name alone, not on who there is, so that the time
// does not show that: both, the one for a name without a canonical form, and nothing for a name that no
// user can have. ErrNotFound.
func (s *Service) userTyped(ctx context.Context, name typedName) (User, error) {
	if name.canonical == "" {
		return s.findUser(ctx, name.given)
	}
	user, err := s.store.User(ctx, name.canonical)
	if name.given == name.canonical {
		return user, err
	}
	if exact, exactErr := s.store.User(ctx, name.given); !errors.Is(exactErr, ErrNotFound) {
		return exact, exactErr
	}
	return user, err
}

// StoredName returns the name under which the user is stored, if there is one, whom an operator means
// who typed the name: exactly that one, as [ValidateUsername] describes those of earlier releases, or else
// its canonical form. A name without a canonical form is returned as it is.
func StoredName(ctx context.Context, users UserReader, name string) (string, error) {
	canonical, err := username.Canonical(name)
	if err != nil || canonical == name {
		return name, nil //nolint:nilerr // a user of an earlier release may have it
	}
	switch _, err := users.User(ctx, name); {
	case err == nil, errors.Is(err, ErrUnreadableUser):
		return name, nil
	case errors.Is(err, ErrNotFound):
		return canonical, nil
	default:
		return "", fmt.Errorf("read user %q: %w", name, err)
	}
}

// findUser reads the user of exactly that name, without asking the store for a name that no user can
// have.
func (s *Service) findUser(ctx context.Context, name string) (User, error) {
	if ValidateUsername(name) != nil {
		return User{}, ErrNotFound
	}
	return s.store.User(ctx, name)
}
