package traffic

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"oauth-server/internal/app"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
)

// Credentials are what the cast signs in with.
type Credentials struct {
	Secrets   map[string]string `json:"client_secrets"` // by client_id
	Passwords map[string]string `json:"passwords"`      // by username
}

// ReadCredentials reads what [Credentials.WriteFile] wrote.
func ReadCredentials(file string) (c Credentials, err error) {
	raw, err := os.ReadFile(file) //nolint:gosec // G304: the file that was asked for
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return c, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

// WriteFile writes them to a file that only its owner can read.
func (c Credentials) WriteFile(file string) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return os.WriteFile(file, raw, 0o600)
}

// Register makes the clients and users of the cast, each with a new secret. Of
// those that are there already, the secret is replaced.
func Register(ctx context.Context, store app.Store, cast []Member, now time.Time) (Credentials, error) {
	made := Credentials{Secrets: map[string]string{}, Passwords: map[string]string{}}
	for i := range cast {
		secret, err := registerClient(ctx, store, cast[i].Registration(), now)
		if err != nil {
			return made, err
		}
		made.Secrets[cast[i].ID] = secret
		for _, name := range cast[i].Users {
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
		return app.RotateSecret(ctx, store, c.ID)
	}
	return secret, err
}

func registerUser(ctx context.Context, store app.Store, name string, now time.Time) (string, error) {
	if err := store.DeleteUser(ctx, name); err != nil && !errors.Is(err, grants.ErrNotFound) {
		return "", err
	}
	password := rand.Text()
	_, err := app.CreateUser(ctx, store, name, password, now)
	return password, err
}
