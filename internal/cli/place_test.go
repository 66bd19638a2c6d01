package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oauth-server/internal/admin/adminlocal"
	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

// TestServerOfTheEnvironment: OAUTH_SERVER is where client and user work, as limits do, and never the store
// that happens to be here; an address that is empty is none.
func TestServerOfTheEnvironment(t *testing.T) {
	data := storeFile(t)
	var ops credentials
	runJSON(t, &ops, "", "client", "create", "ops", "--admin", "--data", data)
	server := serving(t, "serve", "--data", data)
	t.Chdir(t.TempDir()) // which has a store of its own
	runJSON(t, &credentials{}, "", "client", "create", "shop", "--create")
	environ := []string{"OAUTH_SERVER=" + server.operators, "OAUTH_CLIENT_ID=ops", "OAUTH_CLIENT_SECRET=" + ops.ClientSecret}
	for _, tt := range []struct {
		args   string
		status int
		says   string
	}{
		{"client create there --no-cache", command.ExitOK, "using the admin API at " + server.operators + "\n"},
		{"client delete shop --no-cache", command.ExitFailed, `client "shop" does not exist`},
		{"user list --no-cache", command.ExitOK, "using the admin API at " + server.operators + "\n"},
		{"client list --data oauth-server.db", command.ExitUsage, "OAUTH_SERVER and --data cannot be used together"},
		{"client list --config cluster.yaml", command.ExitUsage, "OAUTH_SERVER and --config cannot be used together"},
		{"client list --mongodb-uri mongodb://127.0.0.1:1", command.ExitUsage, "OAUTH_SERVER and --mongodb-uri cannot be used together"},
	} {
		_, stderr, status := runWith(t, environ, "", strings.Fields(tt.args)...)
		if status != tt.status || !strings.Contains(stderr, tt.says) {
			t.Errorf("%s: status %d: %s", tt.args, status, stderr)
		}
	}
	for _, args := range []string{"client delete shop", "limits list"} {
		has(t, runFails(t, command.ExitUsage, `--server`, "", append(strings.Fields(args), "--server", "")...), "it is empty")
	}
	stdout, _, _ := run(t, "", "client", "list")
	check.Equal(t, "the store here is as it was", strings.Contains(stdout, "shop"), true)
}

// TestOneTokenForACommand: a command with many calls and no place for a file gets one token, and is not
// denied.
func TestOneTokenForACommand(t *testing.T) {
	data := storeFile(t)
	var ops credentials
	runJSON(t, &ops, "", "client", "create", "ops", "--admin", "--data", data)
	server := serving(t, "serve", "--data", data)
	environ := []string{"OAUTH_SERVER=" + server.operators, "OAUTH_CLIENT_ID=ops", "OAUTH_CLIENT_SECRET=" + ops.ClientSecret}
	lines := &strings.Builder{}
	for n := range 120 {
		_, _ = fmt.Fprintf(lines, `{"client_id": "c%d", "token_endpoint_auth_method": "none", "redirect_uris": ["http://127.0.0.1/"]}`+"\n", n)
	}
	stdout, stderr, status := runWith(t, environ, lines.String(), "client", "import", "-", "--no-cache")
	if status != command.ExitOK || !strings.Contains(stdout, "imported 120 clients") {
		t.Fatalf("status %d: %s%s", status, stdout, stderr)
	}
	var top struct {
		Clients []struct {
			ClientID string `json:"client_id"`
			Activity struct{ Allowed int }
		}
	}
	runJSON(t, &top, "", "limits", "list", "--server", server.operators, "--client-id", "ops", "--client-secret", ops.ClientSecret, "--no-cache")
	check.Equal(t, "tokens of the import and of the list", top.Clients[0].Activity.Allowed, 2)

	dir := t.TempDir()
	file, absent := filepath.Join(dir, "file"), filepath.Join(dir, "absent")
	check.OK(t, os.WriteFile(file, nil, 0o600))
	for name, place := range map[string]struct{ home, cache string }{
		"no home":                       {"", ""},
		"a home that is not there":      {absent, ""},
		"a home that is no directory":   {file, ""},
		"a cache that cannot be made":   {dir, file},
		"a cache where nothing is made": {dir, filepath.Join(absent, "deep")},
	} {
		t.Setenv("HOME", place.home)
		t.Setenv("XDG_CACHE_HOME", place.cache)
		if _, stderr, status := runWith(t, environ, "", "limits", "list"); status != command.ExitOK {
			t.Errorf("%s: status %d: %s", name, status, stderr)
		}
		if _, err := os.Stat(absent); err == nil {
			t.Fatalf("%s: it was made", name)
		}
	}
}

// TestServerWithTLSOnThisMachine: a certificate for a host name only is enough for the commands that find
// the server by its data file, because the key says which server it is.
func TestServerWithTLSOnThisMachine(t *testing.T) {
	cert, key := selfSigned(t, "auth.example")
	data := storeFile(t)
	var ops credentials
	runJSON(t, &ops, "", "client", "create", "ops", "--admin", "--data", data)
	server := serving(t, "serve", "--data", data, "--tls-cert-file", cert, "--tls-key-file", key)
	address := "https://" + strings.TrimPrefix(server.operators, "http://")
	for _, args := range []string{"client create shop", "user list"} {
		_, stderr, status := run(t, "", append(strings.Fields(args), "--data", data)...)
		if status != command.ExitOK || !strings.Contains(stderr, "using the admin API at "+address+", because that server holds") {
			t.Errorf("%s: status %d: %s", args, status, stderr)
		}
	}
	// A server that is named has to be the one of that name.
	runFails(t, command.ExitFailed, "certificate", "", "limits", "list", "--server", address, "--ca-file", cert, "--client-id", "ops", "--client-secret", ops.ClientSecret)

	impostor := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("it was sent %s %s", r.URL, r.Header)
	}))
	defer impostor.Close()
	access, err := adminlocal.Read(data)
	check.OK(t, err)
	access.URL = impostor.URL
	check.OK(t, access.Write(data))
	runFails(t, command.ExitFailed, "another server answers at "+impostor.URL, "", "client", "list", "--data", data)
}

// TestNamesOfDots: clients and users of any name are managed through a server, although paths are cleaned
// of dots on their way; and what an operator types for a user is the user of the trail.
func TestNamesOfDots(t *testing.T) {
	data := storeFile(t)
	var ops credentials
	runJSON(t, &ops, "", "client", "create", "ops", "--admin", "--data", data)
	server := serving(t, "serve", "--data", data)
	environ := []string{"OAUTH_SERVER=" + server.operators, "OAUTH_CLIENT_ID=ops", "OAUTH_CLIENT_SECRET=" + ops.ClientSecret}
	for _, step := range []struct{ args, says string }{
		{"client create ..", ".."},
		{"client show ..", ".."},
		{"client update .. --name Dots", "Dots"},
		{"limits set .. --user 10/60s --yes", "The policy of .. is now set"},
		{"limits get ..", "10/60s"},
		{"limits top .. --counters", "ESTIMATE"},
		{"client delete ..", "deleted client .."},
		{"user create . --password-stdin", "created user ."},
		{"user show .", "operator"},
		{"limits audit --target users/.", "create users/."},
		{"user delete .", "deleted user ."},
		{"client show a/b", `client "a/b" does not exist`},
	} {
		stdout, stderr, _ := runWith(t, environ, adaPassword, append(strings.Fields(step.args), "--no-cache")...)
		if !strings.Contains(stdout+stderr, step.says) || strings.Contains(stderr, "no issuer at") {
			t.Errorf("%s: %s%s", step.args, stdout, stderr)
		}
	}
}
