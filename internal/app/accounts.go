package app

import (
	"context"
	"time"

	"oauth-server/internal/admin/registry"
	"oauth-server/internal/clientcfg"
)

// The functions below are for programs that set up their own store, such as the demo and the tools.
// They write no audit events.

// CreateClient creates a client, see [registry.Service]. It returns the client and its secret.
func CreateClient(ctx context.Context, store registry.Store, c clientcfg.Client, now time.Time) (clientcfg.Client, string, error) {
	return registry.New(registry.Options{Store: store, Now: func() time.Time { return now }}).CreateClient(ctx, c)
}

// CreateUser creates a user, see [registry.Service].
func CreateUser(ctx context.Context, store registry.Store, name, password string, operator clientcfg.Access, now time.Time) (registry.User, error) {
	r := registry.New(registry.Options{Store: store, Now: func() time.Time { return now }})
	return r.CreateUser(ctx, registry.NewUser{Name: name, Password: password, Operator: operator})
}
