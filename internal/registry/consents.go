package registry

import (
	"context"
	"errors"
	"fmt"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
)

// ErrNoConsent is returned if the user allows the client nothing.
var ErrNoConsent = errors.New("the user allows the client nothing")

// Consents are what users allow clients. [grants.Service] is one.
type Consents interface {
	// Allowed returns what a user allows clients, ordered by client.
	Allowed(ctx context.Context, username string) ([]grants.Allowed, error)
	// Withdraw ends what a user allows a client, and what came of it. [grants.ErrNotFound].
	Withdraw(ctx context.Context, username, clientID string) error
}

// Consents returns what a user allows clients, ordered by client. Errors: [grants.ErrNotFound].
func (r *Registry) Consents(ctx context.Context, typed string) (user string, list []grants.Allowed, err error) {
	u, err := r.user(ctx, typed)
	if err != nil {
		return "", nil, err
	}
	if list, err = r.o.Consents.Allowed(ctx, u.Name); err != nil {
		return u.Name, nil, fmt.Errorf("user %q: %w", u.Name, err)
	}
	return u.Name, list, nil
}

// WithdrawConsent ends what a user allows a client, and what came of it: on every instance at once.
// Errors: [ErrNoConsent], [grants.ErrNotFound].
func (r *Registry) WithdrawConsent(ctx context.Context, typed, clientID string) error {
	u, err := r.user(ctx, typed)
	if err != nil {
		return err
	}
	ch := change{"withdraw_consent", clientcfg.UserTarget(u.Name), map[string]string{"client_id": clientID}, nil}
	err = r.record(ctx, ch, func() error { return r.o.Consents.Withdraw(ctx, u.Name, clientID) })
	switch {
	case errors.Is(err, grants.ErrNotFound):
		return ErrNoConsent
	case err != nil:
		return fmt.Errorf("user %q: %w", u.Name, err)
	}
	return nil
}
