package cli

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

// TestPreviewAtAGateway: a change that enforces more shows the clients that the gateway has seen, says the same with
// --check, and without an answer changes nothing. A name that nobody knows gets a warning.
func TestPreviewAtAGateway(t *testing.T) {
	data, file := storeFile(t), filepath.Join(t.TempDir(), "gateway.yaml")
	check.OK(t, os.WriteFile(file, []byte(`gateway:
  upstream: `+tokenUpstream(t)+`
  token_path: [ /oauth2/token ]
rate_limit:
  mode: dry_run
  default: { user: [ { requests: 5 } ], client: [ { requests: 5 } ] }
`), 0o600))
	var ops credentials
	runJSON(t, &ops, "", "client", "create", "ops", "--admin", "--data", data)
	o := serving(t, "gateway", "--config", file, "--data", data)
	token := askToken(t, o.operators, ops)
	for range 8 {
		status, _ := postForm(t, o.clients+"/oauth2/token", credentials{ClientID: "batch", ClientSecret: "x"}, url.Values{"grant_type": {"client_credentials"}})
		check.Equal(t, "status", status, http.StatusOK)
	}
	limits := func(args ...string) []string {
		return append(append([]string{"limits"}, args...), "--server", o.operators, "--token", token)
	}
	for _, change := range [][]string{{"dry-run", "off"}, {"dry-run", "batch", "off"}, {"dry-run", "off", "--for", "1h"}} {
		preview, _, status := run(t, "", append(limits(change...), "--check")...)
		check.Equal(t, "status of --check", status, command.ExitOK)
		has(t, preview, "would have denied requests of 1 of 2 active clients: batch (3 requests).")
		for _, answer := range []string{"", "n\n"} {
			out, errs, status := run(t, answer, limits(change...)...)
			check.Equal(t, strings.Join(change, " ")+": status without a yes", status, command.ExitFailed)
			check.Equal(t, "output", out, "")
			has(t, errs, "batch (3 requests).", "Continue?")
		}
		var settings adminapi.SettingsView
		runJSON(t, &settings, "", limits("get")...)
		check.Equal(t, "mode", settings.Mode, "dry_run")
	}
	var changed any
	out, errs, status := run(t, "", append(limits("trust", "btach"), "-o", "json")...)
	check.Equal(t, "status", status, command.ExitOK)
	has(t, errs, `warning: Client "btach" is unknown`, "did you mean batch?")
	check.OK(t, json.Unmarshal([]byte(out), &changed))
	_, errs, _ = run(t, "", limits("set", "batch", "--client", "9/60s")...)
	check.Equal(t, "of a known client", errs, "")
	o.stop(t)
}
