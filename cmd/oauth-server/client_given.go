package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"oauth-server/internal/app"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

// givenSecret is the flag --secret-file: a secret that was made elsewhere.
type givenSecret struct{ file, text string }

func (g *givenSecret) add(flags *pflag.FlagSet) {
	flags.StringVar(&g.file, "secret-file", "", "file with the secret of the client, made elsewhere (openssl rand -base64 32); if the client has it already, nothing is changed")
}

// apply reads the file and gives the secret to the client.
func (g *givenSecret) apply(spec *clientcfg.Client) error {
	if g.file == "" {
		return nil
	}
	if spec.Public {
		return usagef("--secret-file: a public client has no secret")
	}
	text, err := os.ReadFile(g.file)
	if err != nil {
		return fmt.Errorf("read --secret-file: %w", err)
	}
	g.text = strings.TrimRight(string(text), "\r\n")
	if spec.SecretDigest, err = secret.Given(g.text); err != nil {
		return usagef("--secret-file %s: %w", g.file, err)
	}
	return nil
}

// created turns the refusal to create a client that has the secret already into a success, so that a
// job that registers it can be repeated.
func (g *givenSecret) created(ctx context.Context, store app.Store, id string, err error) (already bool, _ error) {
	if g.file == "" || !errors.Is(err, clientcfg.ErrExists) {
		return false, err
	}
	is, failed := app.FindClient(ctx, store, id)
	switch {
	case failed != nil:
		return false, failed
	case !is.SecretDigest.Matches(g.text):
		return false, fmt.Errorf("there is a client %q already, with another secret", id)
	}
	return true, nil
}
