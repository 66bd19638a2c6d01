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
