package cli

import (
	"os"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

// TestCompletionsOfTheStore: what is offered comes from where the command would work: from the store, or
// from the server that has it open, without an admin client. Nothing is made or said.
func TestCompletionsOfTheStore(t *testing.T) {
	t.Chdir(t.TempDir())
	offered := func(typed string) string {
		stdout, stderr, _ := run(t, "", strings.Split("__complete "+typed, " ")...)
		if strings.Contains(stderr, "using") {
			t.Errorf("%s: %s", typed, stderr)
		}
		names, _, _ := strings.Cut(stdout, ":")
		return strings.Join(strings.Fields(names), " ")
	}
	for _, typed := range []string{"client show ", "client create x --create --label "} {
		check.Equal(t, typed+" without a store", offered(typed), "")
	}
	if _, err := os.Stat("oauth-server.db"); err == nil {
		t.Fatal("a data file was made")
	}
	runJSON(t, &credentials{}, "", "client", "create", "shop", "--create", "--label", "team=payments")
	runJSON(t, &credentials{}, "", "client", "create", "app")
	addUsers(t, nil, "ada", "adam", "bob")
	for _, where := range []string{"in the store", "on the server that has it"} {
		if where != "in the store" {
			serving(t, "serve")
		}
		for typed, want := range map[string]string{
			"client show ": "app shop", "client rotate-secret s": "shop",
			"client list --label ": "team=payments", "client update shop --remove-label ": "team",
			"user show ": "ada adam bob", "user show ada": "ada adam", "user show adam": "adam",
		} {
			check.Equal(t, typed+where, offered(typed), want)
		}
	}
}
