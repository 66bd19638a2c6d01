package main

import (
	"strings"
	"testing"
)

// TestDeletingAClientWithLimits: its limits stay, and the command says so, on a server and on the store.
func TestDeletingAClientWithLimits(t *testing.T) {
	data := storeFile(t)
	var ops credentials
	runJSON(t, &ops, "", "client", "create", "ops", "--admin", "--data", data)
	for _, id := range []string{"here", "there", "neither", "never"} {
		runJSON(t, &credentials{}, "", "client", "create", id, "--data", data)
	}
	o := launchOperated(t, "serve", "--data", data, "--issuer", "http://127.0.0.1:9096")
	token := askToken(t, o.clients, ops)
	for _, id := range []string{"here", "there", "neither"} {
		runJSON(t, &map[string]any{}, "", "limits", "set", id, "--client", "10/60s", "--yes", "--server", o.operators, "--token", token)
	}
	unset := func(id string) {
		t.Helper()
		if _, stderr, status := run(t, "", "limits", "unset", id, "--yes", "--server", o.operators, "--token", token); status != exitOK {
			t.Errorf("unset %s: status %d: %s", id, status, stderr)
		}
	}
	unset("neither")
	deletes := func(id string, says bool) {
		t.Helper()
		_, stderr, status := run(t, "", "client", "delete", id, "--data", data)
		if status != exitOK || strings.Contains(stderr, "oauth-server limits unset '"+id+"'") != says {
			t.Errorf("delete %s: status %d: %s", id, status, stderr)
		}
	}
	deletes("there", true)
	unset("there")
	deletes("never", false)
	o.stop(t)
	deletes("here", true)
	deletes("neither", false)
}
