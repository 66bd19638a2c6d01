package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// The users in every test's store.
const (
	user       = "ada"
	secondUser = "grace"
	password   = "correct horse battery staple" // of both
)

// clientArgs are the registrations, by client_id.
var clientArgs = map[string][]string{
	"shop":    {"--grant", "client_credentials", "--scope", "read", "--scope", "write", "--resource-server"},
	"web":     {"--grant", "authorization_code", "--grant", "refresh_token", "--redirect-uri", "https://web.example/cb", "--redirect-uri", "http://127.0.0.1/callback", "--scope", "read", "--scope", "write"},
	"native":  {"--public", "--grant", "authorization_code", "--grant", "refresh_token", "--redirect-uri", "http://127.0.0.1/callback", "--scope", "read"},
	"legacy":  {"--grant", "password", "--grant", "refresh_token", "--scope", "read", "--scope", "write"},
	"console": {"--admin", "--grant", "authorization_code", "--redirect-uri", "http://127.0.0.1/callback"},
	"desk":    {"--admin", "--public", "--grant", "authorization_code", "--grant", "refresh_token", "--redirect-uri", "http://127.0.0.1/callback"},
	"other":   {"--grant", "client_credentials", "--grant", "authorization_code", "--grant", "refresh_token", "--redirect-uri", "https://other.example/cb", "--scope", "read"},
}

// What TestMain prepares once.
var (
	binary  string            // the command under test
	fixture string            // a store with the clients and the user
	secrets map[string]string // by client_id; none for a public one
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "e2e-*")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		err = prepare(context.Background(), dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e: prepare:", err)
		return 1
	}
	status := m.Run()
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	return status
}

// prepare builds the command, with the race detector if the tests have it, and registers the clients
// and users through its command line.
func prepare(ctx context.Context, dir string) error {
	binary = filepath.Join(dir, "oauth-server")
	fixture = filepath.Join(dir, "fixture.db")
	secrets = map[string]string{}
	args := append([]string{"build", "-o", binary}, buildFlags...)
	if _, err := goTool(ctx, append(args, mainPackage)...); err != nil {
		return err
	}
	for id, args := range clientArgs {
		out, err := command(ctx, "", append([]string{"client", "create", id, "--create", "--data", fixture, "-o", "json"}, args...)...)
		if err != nil {
			return err
		}
		var made struct {
			ID     string `json:"client_id"`
			Secret string `json:"client_secret"`
		}
		if err := json.Unmarshal(out, &made); err != nil || made.ID != id {
			return fmt.Errorf("client create %s answered %s: %w", id, out, err)
		}
		secrets[id] = made.Secret
	}
	for _, name := range []string{user, secondUser} {
		if _, err := command(ctx, password+"\n", "user", "create", name, "--password-stdin", "--data", fixture); err != nil {
			return err
		}
	}
	return nil
}

const mainPackage = "oauth-server/cmd/oauth-server"

// goTool runs the go command and returns what it prints, without the last newline.
func goTool(ctx context.Context, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w: %s", strings.Join(args[:2], " "), err, stderr.String())
	}
	return strings.TrimSpace(stdout.String()), nil
}

// command runs the command and returns what it prints.
func command(ctx context.Context, stdin string, args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("oauth-server %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.Bytes(), nil
}
