package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// CreateUser stores a person with the argon2id hash of the password.
// Errors: *[InvalidError], [grants.ErrExists].
func CreateUser(ctx context.Context, reg grants.UserRegistry, name, password string, now time.Time) (grants.User, error) {
	if err := errors.Join(grants.ValidateUsername(name), grants.ValidatePassword(password)); err != nil {
		return grants.User{}, &InvalidError{err}
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
