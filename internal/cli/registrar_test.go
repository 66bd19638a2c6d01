package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oauth-server/internal/admin/adminlocal"
	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/connect"
)

// TestRegisteringWhileServing: what README shows works while the server has the file, without an admin
// client, and what is registered works at once.
func TestRegisteringWhileServing(t *testing.T) {
	data := storeFile(t)
	server := serving(t, "serve", "--data", data)
	on := func(args string) []string { return append(strings.Fields(args), "--data", data) }
	var shop credentials
	_, stderr, status := run(t, "", on("client create web --public --redirect-uri http://127.0.0.1/callback")...)
	if want := "using the admin API at " + server.operators + ", because that server holds " + data + "\n"; status != command.ExitOK || stderr != want {
		t.Errorf("status %d: %q, want %q", status, stderr, want)
	}
	runJSON(t, &shop, "", on("client create shop --grant client_credentials --scope orders:read")...)
	askToken(t, server.clients, shop)
	var updated struct{ Scopes []string }
	runJSON(t, &updated, "", on("client update shop --add-scope orders:write --remove-scope orders:read")...)
	check.Equal(t, "scopes", updated.Scopes, []string{"orders:write"})
	var second credentials
	runJSON(t, &second, "", on("client rotate-secret shop --overlap 1h")...)
	askToken(t, server.clients, shop) // the one before is still good
	askToken(t, server.clients, second)
	var shown struct{ Secrets []struct{ ID string } }
	runJSON(t, &shown, "", on("client show shop")...)
	check.Equal(t, "secrets", len(shown.Secrets), 2)
	for _, step := range []struct{ args, says string }{
		{"client rotate-secret shop --end-former", "ended the old secret"},
		{"client update shop --resource-server", "resource server"},
		{"client revoke shop", "revoked all tokens"},
		{"client rotate-secret shop", "client_secret"},
		{"client list --prefix sh", "shop"},
		{"user create Ada --password-stdin --operator=read", "created user ada"},
		{"user operator ada on", "user ada may now use the admin API"},
		{"user show ADA", "operator  write"},
		{"user revoke ada --session all", "ended 0 sessions"},
		{"user revoke ada --family all", "ended 0 families"},
		{"user passwd ada --password-stdin", "changed the password of user ada"},
		{"user revoke ada", "ended the sessions"},
		{"user unlock ada", "no longer slowed down"},
		{"user delete ada", "deleted user ada"},
		{"client delete shop", "deleted client shop"},
	} {
		has(t, runOK(t, adaPassword, on(step.args)...), step.says)
	}
	for args, says := range map[string]string{
		"client show nobody": `client "nobody" does not exist`, "user show nobody": `user "nobody" does not exist`,
		"client create web": `client "web" already exists`, "client create x --grant implicit": `grant_types[0]: unknown grant type "implicit"`,
		"user create bob --password-stdin": "easy to guess", "client update web": "nothing to change",
		"client rotate-secret shop --end-former": "does not exist", "user revoke bob --session x": "no such",
	} {
		_, stderr, status := run(t, "password2026", on(args)...)
		if status == command.ExitOK || !strings.Contains(stderr, says) {
			t.Errorf("%s: status %d: %s", args, status, stderr)
		}
	}
}

// TestServerNamed: with --server the command acts as the operator that it is given.
func TestServerNamed(t *testing.T) {
	data := storeFile(t)
	var ops, old credentials
	runJSON(t, &ops, "", "client", "create", "ops", "--admin", "--data", data)
	runJSON(t, &old, "", "client", "create", "old", "--scope", "ratelimit:write", "--audience", "urn:oauth-server:admin", "--data", data)
	server := serving(t, "serve", "--data", data)
	as := func(c credentials, args ...string) []string {
		return append(args, "--server", server.operators, "--client-id", c.ClientID, "--client-secret", c.ClientSecret, "--no-cache")
	}
	var made credentials
	runJSON(t, &made, "", as(ops, "client", "create", "shop", "--reason", "ticket 9")...)
	askToken(t, server.clients, made)
	runOK(t, "", as(old, "client", "list")...)
	runFails(t, command.ExitFailed, "client update ID --admin", "", as(old, "client", "delete", "shop")...)
	runFails(t, command.ExitFailed, "could not make another one afterwards; to do it anyway, add --confirm 'ops'\n", "", as(ops, "client", "delete", "ops")...)
	runFails(t, command.ExitUsage, "cannot be used together", "", append(as(ops, "client", "list"), "--data", data)...)
	run(t, "", "client", "delete", "shop", "--data", data)
	var audit struct {
		Entries []struct {
			Action, Target, Reason string
			Actor                  struct {
				ClientID string `json:"client_id"`
				Store    string
			}
		}
	}
	runJSON(t, &audit, "", as(ops, "limits", "audit", "--target", "clients/shop")...)
	if e := audit.Entries; len(e) != 2 || e[0].Actor.Store != connect.Whoami() || e[1].Actor.ClientID != "ops" || e[1].Reason != "ticket 9" {
		t.Errorf("%+v", e)
	}
	stdout, _, _ := run(t, "", as(ops, "limits", "audit")...)
	if !strings.Contains(stdout, connect.Whoami()+" (store)") || strings.Contains(stdout, made.ClientSecret) {
		t.Errorf("the trail:\n%s", stdout)
	}
}

// TestAddressThatIsLeft: what a killed server has left beside its file is not believed.
//
// Attack (operators): An impostor at the server's address. Commands send no credentials before
// the server proves that it has the local key. Also app.TestKeyOverTLS.
func TestAddressThatIsLeft(t *testing.T) {
	data := storeFile(t)
	server := serving(t, "serve", "--data", data)
	left, err := os.ReadFile(data + ".admin")
	check.OK(t, err)
	server.stop(t)
	check.OK(t, os.WriteFile(data+".admin", left, 0o600)) // as after a kill
	_, stderr, status := run(t, "", "client", "create", "shop", "--data", data)
	if status != command.ExitOK || !strings.Contains(stderr, "using the store "+data+" directly") {
		t.Errorf("status %d: %s", status, stderr)
	}

	// Another program has the address now, and this process the file, without an admin address.
	servingAt(t, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "", "--data", data)
	impostor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.URL.Path != "/healthz" {
			t.Errorf("it was sent %s %s", r.URL, r.Header)
		}
		w.Header().Set(adminlocal.ProofHeader, "guessed")
	}))
	defer impostor.Close()
	var access adminlocal.Access
	check.OK(t, json.Unmarshal(left, &access))
	access.URL = impostor.URL
	check.OK(t, access.Write(data))
	for _, says := range []string{"another server", "has no known admin address"} {
		_, stderr, status = run(t, "", "client", "list", "--data", data)
		if status != command.ExitFailed || !strings.Contains(stderr, says) || !strings.Contains(stderr, "stop it first") {
			t.Errorf("status %d: %s", status, stderr)
		}
		check.OK(t, os.RemoveAll(data+".admin"))
	}
}

// TestAddressIsRemoved: a server that stops takes the file with it.
func TestAddressIsRemoved(t *testing.T) {
	data := storeFile(t)
	server := serving(t, "serve", "--data", data)
	info, err := os.Stat(data + ".admin")
	check.OK(t, err)
	check.Equal(t, "mode", info.Mode().Perm(), os.FileMode(0o600))
	server.stop(t)
	files, err := filepath.Glob(data + "*")
	check.OK(t, err)
	check.Equal(t, "files", files, []string{data})
}

// withoutPlace removes the line that says where a command works.
func withoutPlace(stderr string) string {
	if rest, is := strings.CutPrefix(stderr, "using "); is {
		_, stderr, _ = strings.Cut(rest, "\n")
	}
	return stderr
}

// TestAdminClientThatIsLockedOut: the command says so, and does what it was asked for.
func TestAdminClientThatIsLockedOut(t *testing.T) {
	data, file := storeFile(t), filepath.Join(t.TempDir(), "x.yaml")
	check.OK(t, os.WriteFile(file, []byte("rate_limit: { default: { client: [ { requests: 1, window: 24h } ] } }\n"), 0o600))
	serving(t, "serve", "--data", data, "--config", file)
	for _, step := range []struct {
		args string
		says bool
	}{{"client create shop", false}, {"client update shop --admin", true}, {"client create ops --admin", true}} {
		_, stderr, status := run(t, "", append(strings.Fields(step.args), "--data", data)...)
		if status != command.ExitOK || strings.Contains(stderr, "lock this client out of the admin API: the limit ") != step.says {
			t.Errorf("%s: status %d: %s", step.args, status, stderr)
		}
	}
}
