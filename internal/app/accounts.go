package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
	"oauth-server/internal/username"
)

// Errors of a name that is taken by one of the other kind: the tokens of both would have the same sub.
var (
	ErrNameOfUser   = errors.New("there is a user of that name")
	ErrNameOfClient = errors.New("there is a client of that name")
)

// clientRegistry is what the registration of a client needs.
type clientRegistry interface {
	clientcfg.Registry
	grants.Users
}

// userRegistry is what a new user needs.
type userRegistry interface {
	grants.UserRegistry
	clientcfg.Store
}

// CreateClient completes the registration, checks and stores it, and returns it with the secret of a
// confidential client, which is stored as a digest only. A client whose digest is given keeps its
// secret, and none is returned. A client without grants gets those that its
// redirect URIs suggest. Errors: *[InvalidError], [clientcfg.ErrExists], [ErrNameOfUser]; that a user
// of the name is created at the same moment is not noticed.
func CreateClient(ctx context.Context, reg clientRegistry, c clientcfg.Client, now time.Time) (clientcfg.Client, string, error) {
	shown := ""
	if !c.Public && c.SecretDigest.IsZero() {
		shown = secret.New()
		c.SecretDigest = secret.DigestOf(shown)
	}
	if len(c.Grants) == 0 {
		c.Grants = usualGrants(c)
	}
	c.CreatedAt = now.UTC().Truncate(time.Second)
	c.Version, c.Stamp = 1, secret.NewStamp()
	if err := errors.Join(c.Validate(), withoutOpenID(&c)); err != nil {
		return c, "", &InvalidError{err}
	}
	switch _, err := reg.User(ctx, c.ID); {
	case err == nil || errors.Is(err, grants.ErrUnreadableUser):
		return c, "", fmt.Errorf("create client %q: %w", c.ID, ErrNameOfUser)
	case !errors.Is(err, grants.ErrNotFound):
		return c, "", fmt.Errorf("create client %q: %w", c.ID, err)
	}
	if err := reg.CreateClient(ctx, c); err != nil {
		return c, "", fmt.Errorf("create client %q: %w", c.ID, err)
	}
	return c, shown, nil
}

// withoutOpenID refuses to register what every request would be refused for. An earlier release took it for
// any other scope, so it is no part of the validation of what is stored.
func withoutOpenID(c *clientcfg.Client) error {
	if slices.Contains(c.Scopes, clientcfg.ScopeOpenID) {
		return errors.New("scopes: openid is of OpenID Connect, which this server does not do (docs/not-supported.md)")
	}
	return nil
}

// InvalidError is returned for a client or user with invalid fields.
type InvalidError struct{ err error }

// Error implements error, with one line for each problem.
func (e *InvalidError) Error() string { return e.err.Error() }

// Unwrap returns the problems, joined.
func (e *InvalidError) Unwrap() error { return e.err }

// usualGrants never include password: RFC 9700 2.4 says it must not be used, so it has to be
// asked for.
func usualGrants(c clientcfg.Client) []clientcfg.Grant {
	if c.Public || len(c.RedirectURIs) > 0 {
		return []clientcfg.Grant{clientcfg.AuthorizationCode, clientcfg.RefreshToken}
	}
	return []clientcfg.Grant{clientcfg.ClientCredentials}
}

// FindClient returns the client of that ID. Errors: [clientcfg.ErrNotFound],
// [clientcfg.ErrUnreadableClient].
func FindClient(ctx context.Context, store clientcfg.Store, id string) (clientcfg.Client, error) {
	c, err := clientcfg.FindClient(ctx, store, id)
	if err != nil {
		return c, fmt.Errorf("client %q: %w", id, err)
	}
	return c, nil
}

// SetResourceServer allows a confidential client to introspect all access tokens, or only those that
// concern it. Errors: *[InvalidError] for a public client, [clientcfg.ErrNotFound].
func SetResourceServer(ctx context.Context, store clientStore, id string, on bool) error {
	_, err := changeClient(ctx, store, id, func(c *clientcfg.Client, _ time.Time) error {
		c.ResourceServer = on
		if err := c.Validate(); err != nil {
			return &InvalidError{err}
		}
		return nil
	})
	return err
}

// CreateUser stores a user under the canonical form of the name, with the argon2id hash of the password.
// operator is what the user may do with the admin API.
// Errors: *[InvalidError], *[CollisionError], [grants.ErrExists], [ErrNameOfClient]; that a client of the name is
// registered at the same moment is not noticed.
func CreateUser(ctx context.Context, reg userRegistry, given, password string, operator clientcfg.Access, now time.Time) (grants.User, error) {
	name, bad := username.New(given)
	if err := errors.Join(bad, grants.ValidatePassword(given, password)); err != nil {
		return grants.User{}, &InvalidError{err}
	}
	if err := checkCollision(ctx, reg, name); err != nil {
		return grants.User{}, fmt.Errorf("create user %q: %w", name, err)
	}
	switch _, err := FindClient(ctx, reg, name); {
	case err == nil || errors.Is(err, clientcfg.ErrUnreadableClient):
		return grants.User{}, fmt.Errorf("create user %q: %w", name, ErrNameOfClient)
	case !errors.Is(err, clientcfg.ErrNotFound):
		return grants.User{}, fmt.Errorf("create user %q: %w", name, err)
	}
	hash, err := hashPassword(ctx, name, password)
	if err != nil {
		return grants.User{}, err
	}
	u := grants.User{
		Name: name, PasswordHash: hash, CreatedAt: now.UTC().Truncate(time.Second), Stamp: secret.NewStamp(), Operator: operator,
	}
	if err := reg.CreateUser(ctx, u); err != nil {
		return u, fmt.Errorf("create user %q: %w", name, err)
	}
	return u, nil
}

func hashPassword(ctx context.Context, name, password string) (string, error) {
	hash, err := secret.NewPasswords(secret.PasswordOptions{Concurrency: 1}).Hash(ctx, password)
	if err != nil {
		return "", fmt.Errorf("hash password of user %q: %w", name, err)
	}
	return hash, nil
}
