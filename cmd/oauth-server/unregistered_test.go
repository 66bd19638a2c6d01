package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

// TestPolicyOfADeletedClient: a server whose configuration names a client that is deleted, or not
// registered yet, starts and serves. It says so in its log, /readyz, the metrics and limits list.
func TestPolicyOfADeletedClient(t *testing.T) {
	data := storeFile(t)
	var ops, shop credentials
	runJSON(t, &ops, "", "client", "create", "ops", "--admin", "--data", data)
	runJSON(t, &shop, "", "client", "create", "shop", "--data", data)
	runJSON(t, &credentials{}, "", "client", "create", "gone", "--data", data)
	runJSON(t, &map[string]any{}, "", "client", "delete", "gone", "--data", data)
	file := filepath.Join(t.TempDir(), "oauth-server.yaml")
	check.OK(t, os.WriteFile(file, []byte("rate_limit:\n  clients:\n    shop: { trusted: true }\n    gone: { trusted: true }\n"), 0o600))

	o := launchOperated(t, "serve", "--config", file, "--data", data, "--issuer", "http://127.0.0.1:9096")
	askToken(t, o.clients, shop)
	const ready = `{"status":"ready","checks":{"configuration":"has a policy for clients that are not registered: \"gone\""}}`
	check.Equal(t, "/readyz", page(t, o.clients+"/readyz"), ready)
	if metrics := page(t, o.operators+"/metrics"); !strings.Contains(metrics, "\noauth_policies_unregistered 1\n") {
		t.Error("the metrics do not count it")
	}
	check.Eventually(t, "the log names it", func() bool {
		return strings.Contains(o.log.String(), "level=WARN msg=\"configuration has a policy for a client that is not registered; it applies when there is one\" client_id=gone field=rate_limit.clients.gone")
	})
	token := askToken(t, o.clients, ops)
	var listed struct {
		Unregistered []string `json:"unregistered"`
	}
	list := []string{"limits", "list", "--server", o.operators, "--token", token}
	runJSON(t, &listed, "", list...)
	check.Equal(t, "unregistered", listed.Unregistered, []string{"gone"})
	if text, _, _ := run(t, "", list...); !strings.Contains(text, "gone") || !strings.Contains(text, "not registered") {
		t.Errorf("the list does not show it:\n%s", text)
	}
	o.stop(t)
}
