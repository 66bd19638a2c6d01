package registry

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 999, time.UTC)

const testPassword = testworld.Password

func openTestStore(t *testing.T) *testworld.Store {
	t.Helper()
	return testworld.OpenStore(t, filepath.Join(t.TempDir(), "test.db"))
}

// Each of the functions below makes one change with its own registry.

func on(store Store) *Service { return New(Options{Store: store}) }

func CreateClient(ctx context.Context, store Store, c clientcfg.Client, now time.Time) (clientcfg.Client, string, error) {
	return New(Options{Store: store, Now: func() time.Time { return now }}).CreateClient(ctx, c)
}

// addClient creates a client, which must succeed, and also returns its secret.
func addClient(tb testing.TB, store Store, c clientcfg.Client) (made clientcfg.Client, secret string) {
	tb.Helper()
	made, secret, err := CreateClient(tb.Context(), store, c, noon)
	check.OK(tb, err)
	return made, secret
}

// addUser creates a user with [testPassword], which must succeed.
func addUser(tb testing.TB, store Store, name string) {
	tb.Helper()
	_, err := CreateUser(tb.Context(), store, name, testPassword, clientcfg.NoAccess, noon)
	check.OK(tb, err)
}

func FindClient(ctx context.Context, store Store, id string) (clientcfg.Client, error) {
	return on(store).FindClient(ctx, id)
}

func RotateSecret(ctx context.Context, store Store, id string, r NewSecret) (clientcfg.Client, string, error) {
	return on(store).AddSecret(ctx, id, r)
}

func RevokeClient(ctx context.Context, store Store, id string) (clientcfg.Client, error) {
	return on(store).RevokeClient(ctx, id)
}

func SetResourceServer(ctx context.Context, store Store, id string, yes bool) error {
	_, err := on(store).ChangeClient(ctx, id, func(c *clientcfg.Client) error { c.ResourceServer = yes; return nil })
	return err
}

func CreateUser(ctx context.Context, store Store, name, password string, operator clientcfg.Access, now time.Time) (User, error) {
	r := New(Options{Store: store, Now: func() time.Time { return now }})
	return r.CreateUser(ctx, NewUser{Name: name, Password: password, Operator: operator})
}

func RevokeUser(ctx context.Context, store Store, name string) error {
	_, err := on(store).RevokeUser(ctx, name)
	return err
}

func SetPassword(ctx context.Context, store Store, name, password string) error {
	_, err := on(store).SetPassword(ctx, name, password)
	return err
}
