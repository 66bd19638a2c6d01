package app

import (
	"context"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/registry"
)

// The functions below are for programs that set up a store of their own, such as the demonstration and
// the tools. They leave nothing in the audit trail.

// CreateClient is that of [registry.Registry].
func CreateClient(ctx context.Context, store registry.Store, c clientcfg.Client, now time.Time) (clientcfg.Client, string, error) {
	return registry.New(registry.Options{Store: store, Now: func() time.Time { return now }}).CreateClient(ctx, c)
}

// CreateUser is that of [registry.Registry].
func CreateUser(ctx context.Context, store registry.Store, name, password string, operator clientcfg.Access, now time.Time) (registry.User, error) {
	r := registry.New(registry.Options{Store: store, Now: func() time.Time { return now }})
	return r.CreateUser(ctx, registry.NewUser{Name: name, Password: password, Operator: operator})
}

// RotateSecret gives a client a new secret, and ends the one before.
func RotateSecret(ctx context.Context, store registry.Store, id string) (shown string, err error) {
	_, shown, err = registry.New(registry.Options{Store: store}).AddSecret(ctx, id, registry.Rotation{})
	return shown, err
}
