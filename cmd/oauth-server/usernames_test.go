package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/app"
	"oauth-server/internal/check"
	"oauth-server/internal/config"
	"oauth-server/internal/grants"
	"oauth-server/internal/registry"
)

// A user is stored under one name, and every command takes it in any form.
func TestNamesInAnyCase(t *testing.T) {
	store := []string{"--data", storeFile(t)}
	var made registry.User
	runJSON(t, &made, adaPassword, append([]string{"user", "create", "Ada", "--password-stdin"}, store...)...)
	check.Equal(t, "stored", made.Username, "ada")
	for _, tt := range []struct{ args, says string }{
		{"user operator ADA read", "user ada may now read"},
		{"user passwd Ada --password-stdin", "changed the password of user ada,"},
		{"user revoke aDA", "ended the sessions and tokens of user ada,"},
		{"user list --check", "the names of 1 user are in order"},
		{"user delete \uff21da", "deleted user ada"},
	} {
		stdout, stderr, status := run(t, adaPassword, append(strings.Fields(tt.args), store...)...)
		if status != exitOK || !strings.Contains(stdout, tt.says) {
			t.Errorf("%s: status %d: %s%s", tt.args, status, stdout, stderr)
		}
	}
	_, stderr, _ := run(t, adaPassword, append(strings.Fields("user create Grace --password-stdin"), store...)...)
	check.Equal(t, "note", withoutPlace(stderr), "note: the user Grace is stored as grace, and signs in by either name\n")
	for args, says := range map[string]string{
		"user create GRACE --password-stdin":      `there is a user "grace" already`,
		"user create gr\u0430ce --password-stdin": "mixes the scripts Cyrillic and Latin",
		"user create \u265a --password-stdin":     "a character that a username cannot have",
		"user delete nobody":                      `there is no user "nobody"`,
	} {
		if _, stderr, status := run(t, adaPassword, append(strings.Fields(args), store...)...); status == exitOK || !strings.Contains(stderr, says) {
			t.Errorf("%s: status %d: %s", args, status, stderr)
		}
	}
}

// TestListCheck: the users of an earlier release are reported, and commands find them.
func TestListCheck(t *testing.T) {
	data := storeFile(t)
	store, err := app.OpenStore(t.Context(), config.Store{Embedded: &config.Embedded{Path: data}})
	check.OK(t, err)
	for _, name := range []string{"Bob", "bob", "carol", "Eve Adams"} {
		check.OK(t, store.CreateUser(t.Context(), grants.User{Name: name, PasswordHash: "x", CreatedAt: time.Now()}))
	}
	check.OK(t, store.Close())

	stdout, stderr, status := run(t, "", "user", "list", "--check", "--data", data)
	check.Equal(t, "status", status, exitFailed)
	check.Equal(t, "message", withoutPlace(stderr), "oauth-server: 3 of 4 users need attention; docs/operating.md says what to do\n")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	begins := []string{"USERNAME   CANONICAL  PROBLEM", "Bob        bob        is one name with bob; signs in only", "Eve Adams  -          signs in only if typed exactly so; holds", "bob        bob        is one name with Bob"}
	if len(lines) != len(begins) || slices.ContainsFunc(begins, func(b string) bool { return !strings.Contains(stdout, b) }) {
		t.Errorf("listed:\n%s", stdout)
	}

	for _, tt := range []struct{ name, says string }{
		{"Bob", "deleted user Bob"}, {"Eve Adams", "deleted user Eve Adams"}, {"BOB", "deleted user bob"},
	} {
		stdout, stderr, _ := run(t, "", "user", "delete", tt.name, "--data", data)
		check.Equal(t, "answer", stdout+withoutPlace(stderr), tt.says+"\n")
	}
	var none []registry.NameReport
	runJSON(t, &none, "", "user", "list", "--check", "--data", data)
	check.Equal(t, "reports", none, []registry.NameReport{})
}
