package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// MaxUsernameLength bounds a username in bytes; it becomes part of counter keys.
const MaxUsernameLength = 256

// ErrUsername is returned for a name that cannot be signed in with.
var ErrUsername = errors.New("a username needs 1 to 256 bytes of printable UTF-8, without spaces around it")

// CreateUser stores a person with the argon2id hash of the password.
// Errors: [ErrUsername], [secret.ErrPasswordLength], [grants.ErrExists].
func CreateUser(ctx context.Context, reg grants.UserRegistry, name, password string, now time.Time) (grants.User, error) {
	if !validUsername(name) {
		return grants.User{}, fmt.Errorf("user %q: %w", name, ErrUsername)
	}
	hash, err := secret.NewPasswords(secret.PasswordOptions{Concurrency: 1}).Hash(ctx, password)
	if err != nil {
		return grants.User{}, fmt.Errorf("user %q: %w", name, err)
	}
	u := grants.User{Name: name, PasswordHash: hash, CreatedAt: now.UTC().Truncate(time.Second)}
	if err := reg.CreateUser(ctx, u); err != nil {
		return u, fmt.Errorf("create user %q: %w", name, err)
	}
	return u, nil
}

func validUsername(name string) bool {
	unfit := func(r rune) bool { return !unicode.IsPrint(r) }
	return name != "" && len(name) <= MaxUsernameLength && utf8.ValidString(name) &&
		strings.TrimSpace(name) == name && !strings.ContainsFunc(name, unfit)
}
