package secret

import (
	"context"
	"errors"
)

// PasswordOptions make [Passwords].
type PasswordOptions struct {
	// Concurrency is how many hashes may be computed at once; the others wait
	// their turn. Zero means half of GOMAXPROCS, at least one.
	Concurrency int
	// Queue is how many may wait. Zero means 1,000.
	Queue int
}

// Errors of [Passwords].
var (
	ErrPasswordLength = errors.New("secret: a password needs 1 to 1024 bytes")
	ErrBusy           = errors.New("secret: too many passwords are being checked")
)

// Passwords hashes and checks people's passwords.
type Passwords struct{}

// NewPasswords makes Passwords.
func NewPasswords(opts PasswordOptions) *Passwords { return &Passwords{} }

// Hash returns the argon2id hash of a password in PHC string format.
func (p *Passwords) Hash(ctx context.Context, password string) (string, error) {
	return "", ErrBusy
}

// Verify reports whether the password belongs to the hash.
func (p *Passwords) Verify(ctx context.Context, hash, password string) (bool, error) {
	return false, ErrBusy
}

// Reject spends the time of a Verify and says no: for users who do not exist.
func (p *Passwords) Reject(ctx context.Context, password string) error { return ErrBusy }
