package grants

import (
	"context"
	"errors"
	"fmt"

	"oauth-server/internal/secret"
	"oauth-server/internal/username"
)

// typedName is a username as a person typed it.
type typedName struct {
	given     string
	canonical string // the name of the user; empty if no user can have this name
}

func typed(name string) typedName {
	canonical, _ := username.Canonical(name) // empty with an error
	return typedName{name, canonical}
}

// key is what attempts with the name count and wait under, before it is known whether there is such a
// user. It is never longer than a digest or a username. The key of a name that no user can have is not
// a username.
func (n typedName) key() string {
	if n.canonical == "" {
		return " " + secret.DigestOf(n.given).String()
	}
	return n.canonical
}

// wrong is the error for a wrong name or password.
func (n typedName) wrong() error {
	if n.canonical == "" {
		return fmt.Errorf("%w: %w", ErrSignIn, ErrUsername)
	}
	return ErrSignIn
}

// userTyped returns the user of a typed name, and what is known of users of that name. Which reads are made
// depends on the name alone, so the time does not show whether there is such a user. ErrNotFound.
func (s *Service) userTyped(ctx context.Context, name typedName) (u User, k Known, err error) {
	if name.canonical == "" {
		return u, k, ErrNotFound
	}
	u, err = s.store.User(ctx, name.canonical)
	if err == nil || errors.Is(err, ErrNotFound) {
		var failed error
		if k, failed = s.store.Known(ctx, name.canonical); failed != nil {
			err = failed
		}
	}
	return u, k, err
}
