package grants_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"oauth-server/internal/accounts"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/keys"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
	"oauth-server/internal/store/bolt"
)

// A daemon gets a token for itself.
func ExampleService_Token() {
	if err := daemon(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: 1h0m0s [read]
}

func daemon(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file, err := bolt.Open(filepath.Join(dir, "example.db"), bolt.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	follower, err := store.NewFollower(ctx, file)
	if err != nil {
		return err
	}
	registrations := clientcfg.NewRegistrations(follower)

	clientSecret := secret.New()
	err = registrations.CreateClient(ctx, clientcfg.Client{
		ID: "daemon", SecretDigest: secret.DigestOf(clientSecret),
		Grants: []clientcfg.Grant{clientcfg.ClientCredentials}, Scopes: []string{"read"},
	}, clientcfg.Event{})
	if err != nil {
		return err
	}
	clients, err := clientcfg.NewSource(ctx, follower, nil)
	if err != nil {
		return err
	}
	ring, err := keys.Open(ctx, keys.NewRepository(follower), keys.Options{Issuer: "https://auth.example.com"})
	if err != nil {
		return err
	}
	mac, err := keys.OpenMAC(ctx, keys.NewRepository(follower), keys.Secrets{}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	service, err := grants.New(grants.Options{
		Issuer: "https://auth.example.com", Clients: clients, Signer: ring, Deriver: mac,
		Store: grants.NewRepository(file), Users: accounts.NewUsers(follower, file), Stored: registrations,
	})
	if err != nil {
		return err
	}

	answer, err := service.Token(ctx, grants.TokenRequest{
		Credentials: grants.Credentials{Method: grants.AuthBasic, ClientID: "daemon", Secret: clientSecret},
		GrantType:   "client_credentials",
	})
	fmt.Println(answer.ExpiresIn, answer.Scopes)
	return err
}
