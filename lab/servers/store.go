// Package servers makes stores of our server through its commands, and runs the server and its peers as processes.
package servers

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo"         //nolint:depguard // drops databases
	"go.mongodb.org/mongo-driver/v2/mongo/options" //nolint:depguard // the same

	"oauth-server/lab/process"
)

// Build builds a command of a module: of the server's, in ".", or of the lab, in "lab". It can be called from any
// directory of the lab. The packages are compiled as for a release, so the tests of the image find them in the cache.
func Build(ctx context.Context, module, command, binary string) error {
	root, err := process.Run(ctx, "", "", "go", "list", "-find", "-f", "{{.Module.Dir}}", "oauth-server/cmd/oauth-server")
	if err != nil {
		return err
	}
	dir := filepath.Join(strings.TrimSpace(string(root)), module)
	_, err = process.Run(ctx, dir, "", "env", "CGO_ENABLED=0", "go", "build", "-trimpath", "-o", binary, command)
	return err
}

// BuildServer builds the server into a directory, and returns the binary.
func BuildServer(ctx context.Context, dir string) (binary string, err error) {
	binary = filepath.Join(dir, "oauth-server")
	return binary, Build(ctx, ".", "./cmd/oauth-server", binary)
}

// Store is a store of the server, in a file or in MongoDB.
type Store struct {
	Binary        string // of the server
	Dir           string // for configuration and logs
	File          string // empty: it is in MongoDB
	URI, Database string
	Secrets       map[string]string // by client
}

// InFile returns a store in a file of the directory, which the first command makes.
func InFile(binary, dir, name string) *Store {
	return &Store{Binary: binary, Dir: dir, File: filepath.Join(dir, name+".db"), Secrets: map[string]string{}}
}

// InMongoDB makes a store in a new database.
func InMongoDB(ctx context.Context, binary, dir, uri string) (*Store, error) {
	s := &Store{Binary: binary, Dir: dir, URI: uri, Database: "lab_" + strings.ToLower(rand.Text()), Secrets: map[string]string{}}
	_, err := s.Command(ctx, "", "migrate", "up")
	return s, err
}

// Flags are those of every command that uses the store.
func (s *Store) Flags() []string {
	if s.File != "" {
		return []string{"--data=" + s.File}
	}
	return []string{"--mongodb-uri=" + s.URI, "--mongodb-database=" + s.Database}
}

// Command runs a command on the store with that input, and returns its output.
func (s *Store) Command(ctx context.Context, input string, args ...string) ([]byte, error) {
	return process.Run(ctx, "", input, append(append([]string{s.Binary}, args...), s.Flags()...)...)
}

// CreateClient registers a client, by the flags of `client create`.
func (s *Store) CreateClient(ctx context.Context, id string, flags ...string) error {
	args := append([]string{"client", "create", id, "--output=json"}, flags...)
	if s.File != "" {
		args = append(args, "--create")
	}
	out, err := s.Command(ctx, "", args...)
	if err != nil {
		return err
	}
	var made struct {
		Secret string `json:"client_secret"`
	}
	err = json.Unmarshal(out, &made)
	s.Secrets[id] = made.Secret
	return err
}

// CreateUser registers a user.
func (s *Store) CreateUser(ctx context.Context, name, password string) error {
	_, err := s.Command(ctx, password+"\n", "user", "create", name, "--password-stdin")
	return err
}

// importStep bounds the clients of one import.
const importStep = 50_000

// Import registers n clients with `client import`. [ImportedClient] has their names.
func (s *Store) Import(ctx context.Context, n int) error {
	args := []string{"client", "import", "-"}
	if s.File != "" {
		args = append(args, "--create")
	}
	for from := 0; from < n; from += importStep {
		var lines strings.Builder
		for i := from; i < min(from+importStep, n); i++ {
			fmt.Fprintf(&lines, `{"client_id":%q,"client_name":"Application number %d","grant_types":["authorization_code","refresh_token"],`+
				`"redirect_uris":["https://app-%d.example.com/oauth/callback"],"scope":"profile area-%d","client_secret_hash":"{SHA256}%064x"}`+"\n",
				ImportedClient(i), i, i, i%50, i+1)
		}
		if _, err := s.Command(ctx, lines.String(), args...); err != nil {
			return err
		}
	}
	return nil
}

// ImportedClient is the ID of the imported client of that number.
func ImportedClient(n int) string { return fmt.Sprintf("client-%07d", n) }

// Drop removes the store.
func (s *Store) Drop(ctx context.Context) error {
	if s.File != "" {
		return os.Remove(s.File)
	}
	ctx = context.WithoutCancel(ctx)
	client, err := mongo.Connect(options.Client().ApplyURI(s.URI))
	if err != nil {
		return err
	}
	return errors.Join(client.Database(s.Database).Drop(ctx), client.Disconnect(ctx))
}
