package grants

import (
	"context"
	"errors"
	"fmt"

	"oauth-server/internal/secret"
	"oauth-server/internal/secret/username"
)

// typedName is a username as the user typed it.
type typedName struct {
	given     string
	canonical string // name of the user; empty if no user can have this name
}

func typed(name string) typedName {
	canonical, _ := username.Canonical(name) // empty with an error
	return typedName{name, canonical}
}

// key returns the key for counting and queueing attempts with the name, before it is known whether
// the user exists. It is never longer than a digest or a username. The key for a name that no user
// can have is never a valid username.
func (n typedName) key() string {
	if n.canonical == "" {
		return " " + secret.DigestOf(n.given).String()
	}
	return n.canonical
}

// wrong returns the error for a wrong username or password.
func (n typedName) wrong() error {
	if n.canonical == "" {
		return fmt.Errorf("%w: %w", ErrSignIn, ErrUsername)
	}
	return ErrSignIn
}

// userTyped returns the user with a typed name, and the Known of that name. The reads depend only
// on the name, so the time does not reveal whether the user exists. Errors: ErrNotFound.
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
