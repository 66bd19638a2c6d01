package traffic

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"oauth-server/internal/admin/registry"
	"oauth-server/internal/app"
	"oauth-server/internal/clientcfg"
	datastore "oauth-server/internal/store"
)

// Credentials are the secrets of clients and the passwords of their users.
type Credentials struct {
	Secrets   map[string]string `json:"client_secrets"` // by client_id
	Passwords map[string]string `json:"passwords"`      // by username
}

// ReadCredentials reads a file that [Credentials.WriteFile] wrote.
func ReadCredentials(file string) (c Credentials, err error) {
	raw, err := os.ReadFile(file) //nolint:gosec // G304: the file named by the caller
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return c, fmt.Errorf("read credentials in %s: %w", file, err)
	}
	return c, nil
}

// WriteFile writes the credentials as JSON to a file that only its owner can read.
func (c Credentials) WriteFile(file string) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return os.WriteFile(file, raw, 0o600)
}

// Register creates the clients and their users, each with a new secret or password, and
// returns these. Clients that exist get a new secret; users that exist are created anew.
func Register(ctx context.Context, store app.Store, clients []Client, now time.Time) (Credentials, error) {
	made := Credentials{Secrets: map[string]string{}, Passwords: map[string]string{}}
	for i := range clients {
		secret, err := registerClient(ctx, store, clients[i].Registration(), now)
		if err != nil {
			return made, err
		}
		made.Secrets[clients[i].ID] = secret
		for _, name := range clients[i].Users {
			if made.Passwords[name], err = registerUser(ctx, store, name, now); err != nil {
				return made, err
			}
		}
	}
	return made, nil
}

func registerClient(ctx context.Context, store app.Store, c clientcfg.Client, now time.Time) (string, error) {
	_, secret, err := app.CreateClient(ctx, store, c, now)
	if errors.Is(err, clientcfg.ErrExists) {
		_, secret, err = registry.New(registry.Options{Store: store}).AddSecret(ctx, c.ID, registry.NewSecret{})
	}
	return secret, err
}

func registerUser(ctx context.Context, store app.Store, name string, now time.Time) (string, error) {
	if err := store.DeleteUser(ctx, name, nil); err != nil && !errors.Is(err, datastore.ErrNotFound) {
		return "", err
	}
	password := rand.Text()
	_, err := app.CreateUser(ctx, store, name, password, clientcfg.NoAccess, now)
	return password, err
}
