package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
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
			answers := []string{"", "n\n", "\n"}
			if args[0] == "user" {
				answers = answers[:1]
			}
			for _, answer := range answers {
				out, stderr, status := run(t, stdin(answer), args...)
				if status != command.ExitFailed || out != "" || !strings.Contains(stderr, path) ||
					!strings.HasSuffix(stderr, "nothing was changed: give another --data, or confirm with --create\n") {
					t.Errorf("after %q: status %d: %s%s", answer, status, out, stderr)
				}
				if _, err := os.Stat(path); err == nil {
					t.Fatal("a data file was made")
				}
			}
			if args[0] == "client" {
				if _, stderr, status := run(t, "y\n", args...); status != command.ExitOK || !strings.Contains(stderr, "Continue? [y/N] ") {
					t.Errorf("confirmed: status %d: %s", status, stderr)
				}
				check.OK(t, os.Remove(path))
			}
			_, stderr, status := run(t, stdin(""), append(args, "--create")...)
			if status != command.ExitOK || strings.Contains(stderr, "[y/N]") || !strings.Contains(stderr, "using the store "+path+" directly\n") {
				t.Errorf("--create: status %d: %s", status, stderr)
			}
		})
	}
}

// TestEmptyStoreStaysEmpty: a data file that was cut to nothing is not laid out, and shown as one without clients, by a command that
// was not told to make one.
func TestEmptyStoreStaysEmpty(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.db")
	check.OK(t, os.WriteFile(empty, nil, 0o600))
	for _, line := range []string{
		"client list", "client show shop", "client create shop", "client delete shop", "client rotate-secret shop", "user list", "user show ada", "keys list",
		"keys rotate", "backup " + empty + ".backup",
	} {
		out, stderr, status := run(t, "", append(strings.Fields(line), "--data", empty)...)
		if status != command.ExitFailed || out != "" || !strings.Contains(stderr, "it is empty") {
			t.Errorf("%s: status %d: %s%s", line, status, out, stderr)
		}
	}
	info, err := os.Stat(empty)
	check.OK(t, err)
	check.Equal(t, "size", info.Size(), 0)
	runOK(t, "", "client", "create", "shop", "--create", "--data", empty)
}

func TestCommandsNameTheirStore(t *testing.T) {
	data := storeFile(t)
	for _, line := range []string{
		"client create shop --create", "client rotate-secret shop", "client revoke shop", "client show shop",
		"client list", "user list -o json", "client delete shop",
	} {
		_, stderr, status := run(t, "", append(strings.Fields(line), "--data", data)...)
		if status != command.ExitOK || strings.Count(stderr, "using the store "+data+" directly\n") != 1 {
			t.Errorf("%s: status %d: %s", line, status, stderr)
		}
	}
	db := database(t)
	runOK(t, "", append([]string{"migrate", "up"}, db...)...)
	_, stderr, status := run(t, "", append([]string{"client", "create", "shop"}, db...)...)
	if status != command.ExitOK || !strings.Contains(stderr, "using the database ") || !strings.Contains(stderr, "within two seconds") {
		t.Errorf("status %d: %s", status, stderr)
	}
}

// TestImportIntoANewStore: what it reads is no answer, so only the flag makes the data file.
func TestImportIntoANewStore(t *testing.T) {
	t.Chdir(t.TempDir())
	const line = `{"client_id": "shop", "token_endpoint_auth_method": "none", "redirect_uris": ["http://127.0.0.1/"]}` + "\n"
	runFails(t, command.ExitFailed, "confirm with --create", line, "client", "import", "-")
	if _, err := os.Stat("oauth-server.db"); err == nil {
		t.Error("a data file was made")
	}
	runOK(t, line, "client", "import", "-", "--create")
}

// TestNoStoreForNothing: a command that fails for what it was given, or only checks, neither asks for a data
// file nor makes one.
func TestNoStoreForNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	const good, bad = `{"client_id": "shop", "token_endpoint_auth_method": "none", "redirect_uris": ["http://127.0.0.1/"]}`, `{"client_id": "x"}`
	for _, tt := range []struct {
		in     string
		args   []string
		status int
		says   string
	}{
		{"", []string{"user", "import", "nosuch.jsonl", "--create"}, command.ExitUsage, "nosuch.jsonl"},
		{"y\n", []string{"client", "create", "bad id"}, command.ExitUsage, "id"},
		{"y\n", []string{"client", "create", "bad id", "--create"}, command.ExitUsage, "id"},
		{"y\n", []string{"client", "create", "x", "--scope", "openid"}, command.ExitUsage, "openid"},
		{"password2026", []string{"user", "create", "ada", "--password-stdin", "--create"}, command.ExitUsage, "easy to guess"},
		{adaPassword, []string{"user", "create", "a b", "--password-stdin", "--create"}, command.ExitUsage, "username"},
		{good, []string{"client", "import", "-", "--check"}, command.ExitOK, "the file is valid: 1 client"},
		{good + "\n" + good, []string{"client", "import", "-", "--check", "--create"}, command.ExitFailed, "1 of 2 lines are valid"},
		{good + "\n" + bad, []string{"client", "import", "-", "--create"}, command.ExitFailed, "Nothing was imported"},
		{bad, []string{"client", "import", "-", "--create", "--partial"}, command.ExitFailed, "imported 0 clients"},
		{"", []string{"client", "import", "-", "--create"}, command.ExitOK, "imported 0 clients"},
	} {
		stdout, stderr, status := run(t, tt.in, tt.args...)
		if status != tt.status || !strings.Contains(stdout+stderr, tt.says) || strings.Contains(stderr, "[y/N]") {
			t.Errorf("%v: status %d: %s%s", tt.args, status, stdout, stderr)
		}
		if _, err := os.Stat("oauth-server.db"); err == nil {
			t.Fatalf("%v: a data file was made", tt.args)
		}
	}
	if stdout, stderr, status := run(t, good+"\n"+bad, "client", "import", "-", "--create", "--partial"); status != command.ExitFailed || !strings.Contains(stdout, "imported 1 client\n") {
		t.Errorf("status %d: %s%s", status, stdout, stderr)
	}
}
