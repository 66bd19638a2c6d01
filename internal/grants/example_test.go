package grants_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/keys"
	"oauth-server/internal/secret"
	"oauth-server/internal/store/embedded"
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
	store, err := embedded.Open(filepath.Join(dir, "example.db"), embedded.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	clientSecret := secret.New()
	err = store.CreateClient(ctx, clientcfg.Client{
		ID: "daemon", SecretDigest: secret.DigestOf(clientSecret),
		Grants: []clientcfg.Grant{clientcfg.ClientCredentials}, Scopes: []string{"read"},
	})
	if err != nil {
		return err
	}
	clients, err := clientcfg.NewSource(ctx, store, nil)
	if err != nil {
		return err
	}
	ring, err := keys.Open(ctx, store, keys.Options{Issuer: "https://auth.example.com"})
	if err != nil {
		return err
	}
	mac, err := keys.OpenMAC(ctx, store, keys.Secrets{}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	service, err := grants.New(grants.Options{
		Issuer: "https://auth.example.com", Clients: clients, Store: store, Signer: ring, Deriver: mac,
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
