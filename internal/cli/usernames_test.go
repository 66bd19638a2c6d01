package cli

import (
	"strings"
	"testing"

	"oauth-server/internal/admin/registry"
	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
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
		{"user delete \uff21da", "deleted user ada"},
	} {
		has(t, runOK(t, adaPassword, append(strings.Fields(tt.args), store...)...), tt.says)
	}
	_, stderr, _ := run(t, adaPassword, append(strings.Fields("user create Grace --password-stdin"), store...)...)
	check.Equal(t, "note", withoutPlace(stderr), "note: the user Grace is stored as grace, and can sign in with either name\n")
	for args, says := range map[string]string{
		"user create GRACE --password-stdin":      `user "grace" already exists`,
		"user create gr\u0430ce --password-stdin": "mixes the scripts Cyrillic and Latin",
		"user create \u265a --password-stdin":     "contains an invalid character",
		"user delete nobody":                      `user "nobody" does not exist`,
	} {
		if _, stderr, status := run(t, adaPassword, append(strings.Fields(args), store...)...); status == command.ExitOK || !strings.Contains(stderr, says) {
			t.Errorf("%s: status %d: %s", args, status, stderr)
		}
	}
}
