package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

// TestNewStoreIsConfirmed: a command in the wrong directory must not make another store without a word.
func TestNewStoreIsConfirmed(t *testing.T) {
	for _, args := range [][]string{{"client", "create", "shop"}, {"user", "create", "ada", "--password-stdin"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Chdir(t.TempDir())
			path, err := filepath.Abs("oauth-server.db")
			check.OK(t, err)
			stdin := func(answer string) string {
				if args[0] == "user" {
					return adaPassword + "\n" // all of it is the password
				}
				return answer
			}
			for _, answer := range []string{"", "n\n", "\n"} {
				out, stderr, status := run(t, stdin(answer), args...)
				if status != exitFailed || out != "" || !strings.Contains(stderr, path) ||
					!strings.HasSuffix(stderr, "nothing was changed: name another data file with --data, or confirm the new one with --create\n") {
					t.Errorf("after %q: status %d: %s%s", answer, status, out, stderr)
				}
				if _, err := os.Stat(path); err == nil {
					t.Fatal("a data file was made")
				}
			}
			if args[0] == "client" {
				if _, stderr, status := run(t, "y\n", args...); status != exitOK || !strings.Contains(stderr, "Continue? [y/N] ") {
					t.Errorf("confirmed: status %d: %s", status, stderr)
				}
				check.OK(t, os.Remove(path))
			}
			_, stderr, status := run(t, stdin(""), append(args, "--create")...)
			if status != exitOK || strings.Contains(stderr, "[y/N]") || !strings.Contains(stderr, "using the store "+path+" directly\n") {
				t.Errorf("--create: status %d: %s", status, stderr)
			}
		})
	}
}

func TestCommandsNameTheirStore(t *testing.T) {
	data := storeFile(t)
	for _, line := range []string{
		"client create shop --create", "client rotate-secret shop", "client revoke shop", "client show shop",
		"client list", "user list -o json", "client delete shop",
	} {
		_, stderr, status := run(t, "", append(strings.Fields(line), "--data", data)...)
		if status != exitOK || strings.Count(stderr, "using the store "+data+" directly\n") != 1 {
			t.Errorf("%s: status %d: %s", line, status, stderr)
		}
	}
	db := database(t)
	if _, stderr, status := run(t, "", append([]string{"migrate", "up"}, db...)...); status != exitOK {
		t.Fatal(stderr)
	}
	_, stderr, status := run(t, "", append([]string{"client", "create", "shop"}, db...)...)
	if status != exitOK || !strings.Contains(stderr, "using the database ") {
		t.Errorf("status %d: %s", status, stderr)
	}
}

// TestImportIntoANewStore: what it reads is no answer, so only the flag makes the data file.
func TestImportIntoANewStore(t *testing.T) {
	t.Chdir(t.TempDir())
	const line = `{"client_id": "shop", "token_endpoint_auth_method": "none", "redirect_uris": ["http://127.0.0.1/"]}` + "\n"
	if _, stderr, status := run(t, line, "client", "import", "-"); status != exitFailed || !strings.Contains(stderr, "confirm the new one with --create") {
		t.Errorf("without --create: status %d: %s", status, stderr)
	}
	if _, err := os.Stat("oauth-server.db"); err == nil {
		t.Error("a data file was made")
	}
	if _, stderr, status := run(t, line, "client", "import", "-", "--create"); status != exitOK {
		t.Errorf("with --create: status %d: %s", status, stderr)
	}
}
