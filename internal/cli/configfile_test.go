package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"oauth-server/internal/check"
)

// configFile is a configuration file with a limit for clients, to be changed.
func configFile(t *testing.T, requests int, more ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "oauth-server.yaml")
	writeLimit(t, path, requests, more...)
	return path
}

func writeLimit(t *testing.T, path string, requests int, more ...string) {
	t.Helper()
	text := fmt.Sprintf("rate_limit: { default: { client: [ { name: per-hour, requests: %d, window: 1h } ] } }\n", requests)
	check.OK(t, os.WriteFile(path, []byte(text+strings.Join(more, "\n")), 0o600))
}

// A configuration file that changes while the server runs: limits are others and no count is lost, an invalid
// one is refused, and what needs a restart is named; all without a restart.
func TestConfigurationFileChangesWhileServing(t *testing.T) {
	data := storeFile(t)
	var shop, ops credentials
	runJSON(t, &shop, "", "client", "create", "shop", "--data", data)
	runJSON(t, &ops, "", "client", "create", "ops", "--admin", "--data", data)
	file := configFile(t, 6)
	o := serving(t, "serve", "--config", file, "--data", data, "--issuer", "http://127.0.0.1:9096")
	token := askToken(t, o.clients, ops)
	passed := func(n int) (passed int) {
		t.Helper()
		for range n {
			if status, _ := postForm(t, o.clients+"/token", shop, url.Values{"grant_type": {"client_credentials"}}); status == http.StatusOK {
				passed++
			}
		}
		return passed
	}
	check.Equal(t, "passed of 6", passed(5), 5)

	writeLimit(t, file, 8)
	o.awaitLog(t, `msg="configuration file reloaded" changed=[rate_limit.default.client]`)
	check.Equal(t, "passed after 6 became 8", passed(5), 3)

	writeLimit(t, file, 9)
	o.hangups <- syscall.SIGHUP
	o.awaitLog(t, `msg="configuration file unchanged"`)
	check.Equal(t, "passed after 8 became 9", passed(5), 1)

	writeLimit(t, file, 100, "drain_delay: x", "no_such_field: 1")
	o.awaitLog(t, `level=ERROR msg="configuration file rejected; keeping the last valid one"`)
	check.Equal(t, "passed", passed(1), 0)
	has(t, o.log.String(), "oauth-server.yaml:2", "oauth-server.yaml:3")
	check.Equal(t, "/readyz", page(t, o.clients+"/readyz"),
		`{"status":"ready","checks":{"configuration_file":"the changed file is refused; the last good one stays in use"}}`)
	instances := []string{"limits", "status", "--server", o.operators, "--token", token}
	has(t, runOK(t, "", instances...), ", the newest is invalid: ")

	writeLimit(t, file, 10, "tokens: { access_ttl: 5m }")
	o.awaitLog(t, `need a restart; all other changes are applied" fields=[tokens.access_ttl]`)
	check.Equal(t, "passed after 9 became 10", passed(5), 1)
	has(t, runOK(t, "", instances...), ", restart needed for tokens.access_ttl")
	o.stop(t)
}

// Two instances with different files: limits status says which, and the metrics differ, until both have one.
func TestInstancesWithDifferentFiles(t *testing.T) {
	db, shop := databaseWithShop(t)
	var ops credentials
	runJSON(t, &ops, "", append([]string{"client", "create", "ops", "--admin"}, db...)...)
	files := []string{configFile(t, 600), configFile(t, 700)}
	var all []operated
	for _, file := range files {
		all = append(all, serving(t, append([]string{"serve", "--config", file, "--issuer", "http://127.0.0.1:9096"}, db...)...))
	}
	token := askToken(t, all[0].clients, ops)
	instances := func() string {
		text, _, _ := run(t, "", "limits", "status", "--server", all[0].operators, "--token", token)
		return text
	}
	hash := func(o operated) string {
		_, rest, _ := strings.Cut(page(t, o.operators+"/metrics"), "\noauth_config_limits_hash ")
		value, _, _ := strings.Cut(rest, "\n")
		return value
	}
	check.Eventually(t, "it says which differ", func() bool {
		return strings.Contains(instances(), "\n\nThe limits in the configuration files differ: ")
	})
	if hash(all[0]) == hash(all[1]) {
		t.Errorf("both have the hash %s", hash(all[0]))
	}
	// What comes of a change is the same, wherever it is made, except for what the files say.
	for _, o := range all {
		run(t, "", "limits", "set", "shop", "--client", "5/1h", "--yes", "--server", o.operators, "--token", token)
	}
	writeLimit(t, files[1], 600)
	all[1].hangups <- syscall.SIGHUP
	check.Eventually(t, "they agree", func() bool {
		text := instances()
		return strings.Count(text, "current") == 2 && !strings.Contains(text, "differ")
	})
	check.Equal(t, "hashes", hash(all[0]), hash(all[1]))
	for _, o := range all {
		check.Eventually(t, "the limit set by an operator holds", func() bool {
			status, _ := postForm(t, o.clients+"/token", shop, url.Values{"grant_type": {"client_credentials"}})
			return status == http.StatusTooManyRequests
		})
	}
}
