package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"oauth-server/internal/adminclient"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/registry"
	"oauth-server/internal/secret"
)

// givenSecret is the flag --secret-file: a secret that was made elsewhere.
type givenSecret struct {
	file   string
	digest secret.Digest
}

func (g *givenSecret) add(flags *pflag.FlagSet) {
	flags.StringVar(&g.file, "secret-file", "", "file with the secret of the client, made elsewhere (openssl rand -hex 32); if the client has it already, nothing is changed")
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
	if g.digest, err = secret.Given(strings.TrimRight(string(text), "\r\n")); err != nil {
		return usagef("--secret-file %s: %w", g.file, err)
	}
	spec.SecretDigest = g.digest
	return nil
}

// created turns the refusal to create a client that has the secret already into a success, so that a
// job that registers it can be repeated.
func (g *givenSecret) created(ctx context.Context, r registrar, id string, err error) (already bool, _ error) {
	if g.file == "" || !taken(err) {
		return false, err
	}
	list, failed := r.Secrets(ctx, id)
	if failed != nil {
		return false, errors.Join(err, failed)
	}
	for _, s := range list {
		if s.Current && s.ID == registry.SecretID(id, g.digest) {
			return true, nil
		}
	}
	return false, fmt.Errorf("there is a client %q already, with another secret", id)
}

// taken reports whether a client could not be created because it exists.
func taken(err error) bool {
	var p *adminclient.ProblemError
	return errors.Is(err, clientcfg.ErrExists) || errors.As(err, &p) && p.Exists()
}
