package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
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

// TestServerOfTheEnvironment: OAUTH_SERVER is where client and user work, as limits do, and never the store
// that happens to be here; an address that is empty is none.
func TestServerOfTheEnvironment(t *testing.T) {
	server := newManaged(t)
	t.Chdir(t.TempDir()) // which has a store of its own
	newClient(t, "here --create")
	for _, tt := range []struct {
		args   string
		status int
		says   string
	}{
		{"client create there --no-cache", command.ExitOK, "using the admin API at " + server.operators + "\n"},
		{"client delete here --no-cache", command.ExitFailed, `client "here" does not exist`},
		{"user list --no-cache", command.ExitOK, "using the admin API at " + server.operators + "\n"},
		{"client list --data oauth-server.db", command.ExitUsage, "OAUTH_SERVER and --data cannot be used together"},
		{"client list --config cluster.yaml", command.ExitUsage, "OAUTH_SERVER and --config cannot be used together"},
		{"client list --mongodb-uri mongodb://127.0.0.1:1", command.ExitUsage, "OAUTH_SERVER and --mongodb-uri cannot be used together"},
	} {
		_, stderr, status := runWith(t, server.environ(), "", strings.Fields(tt.args)...)
		if status != tt.status || !strings.Contains(stderr, tt.says) {
			t.Errorf("%s: status %d: %s", tt.args, status, stderr)
		}
	}
	for _, args := range []string{"client delete here", "limits list"} {
		has(t, runFails(t, command.ExitUsage, `--server`, "", append(strings.Fields(args), "--server", "")...), "it is empty")
	}
	has(t, runOK(t, "", "client", "list"), "here")
}

// TestOneTokenForACommand: a command with many calls and no place for a file gets one token, and is not
// denied.
func TestOneTokenForACommand(t *testing.T) {
	server := newManaged(t)
	environ := server.environ()
	lines := &strings.Builder{}
	for n := range 120 {
		_, _ = fmt.Fprintf(lines, `{"client_id": "c%d", "token_endpoint_auth_method": "none", "redirect_uris": ["http://127.0.0.1/"]}`+"\n", n)
	}
	stdout, stderr, _ := runWith(t, environ, lines.String(), "client", "import", "-", "--no-cache")
	has(t, stdout+stderr, "imported 120 clients")
	var top struct {
		Clients []struct{ Activity struct{ Allowed int } }
	}
	runJSON(t, &top, "", server.args("list")...)
	check.Equal(t, "tokens of the test and of the import", top.Clients[0].Activity.Allowed, 2)

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
	ops := newClient(t, "ops --admin", "--data", data)
	server := serving(t, "serve", "--data", data, "--tls-cert-file", cert, "--tls-key-file", key)
	address := "https://" + strings.TrimPrefix(server.operators, "http://")
	for _, args := range []string{"client create shop", "user list"} {
		has(t, runSays(t, "", on(data, args)...), "using the admin API at "+address+", because that server holds")
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

// TestUnknownAuthority: the error names the setting for the CA that the command has.
func TestUnknownAuthority(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshakes
	server.StartTLS()
	defer server.Close()
	const hint = "if you trust the CA of that certificate, name its file "
	runFails(t, command.ExitFailed, hint+"with --ca-file", "", "health", "--url", server.URL)
	runFails(t, command.ExitFailed, hint+"with --ca-file", "", "limits", "list", "--server", server.URL, "--client-id", "ops", "--client-secret", "x", "--no-cache")
	runFails(t, command.ExitFailed, hint+"in SSL_CERT_FILE", "", "token", "--issuer", server.URL, "--grant", "client_credentials", "--client-id", "ops", "--client-secret", "x", "--no-cache")
}

// TestNamesOfDots: clients and users of any name are managed through a server, although paths are cleaned
// of dots on their way; and what an operator types for a user is the user of the trail.
func TestNamesOfDots(t *testing.T) {
	environ := newManaged(t).environ()
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

// TestRegisteringWhileServing: what README shows works while the server has the file, without an admin
// client, and what is registered works at once.
func TestRegisteringWhileServing(t *testing.T) {
	data := storeFile(t)
	server := serving(t, "serve", "--data", data)
	on := func(args string) []string { return on(data, args) }
	check.Equal(t, "place", runSays(t, "", on("client create web --public --redirect-uri http://127.0.0.1/callback")...),
		"using the admin API at "+server.operators+", because that server holds "+data+"\n")
	shop := newClient(t, "shop --grant client_credentials --scope orders:read", "--data", data)
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
		"client rotate-secret shop --end-former": "does not exist", "user revoke bob --session x": `user "bob" does not exist`,
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
	ops := newClient(t, "ops --admin", "--data", data)
	old := newClient(t, "old --scope ratelimit:write --audience urn:oauth-server:admin", "--data", data)
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
	info, err := os.Stat(data + ".admin")
	check.OK(t, err)
	check.Equal(t, "mode", info.Mode().Perm(), os.FileMode(0o600))
	server.stop(t)
	files, err := filepath.Glob(data + "*")
	check.OK(t, err)
	check.Equal(t, "files after a stop", files, []string{data})
	check.OK(t, os.WriteFile(data+".admin", left, 0o600)) // as after a kill
	has(t, runSays(t, "", on(data, "client create shop")...), "using the store "+data+" directly")

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
		has(t, runFails(t, command.ExitFailed, says, "", on(data, "client list")...), "stop it first, or use its admin API with --server")
		if said := runFails(t, command.ExitFailed, "stop it first", "", on(data, "keys list")...); strings.Contains(said, "--server") {
			t.Errorf("keys list has no flag --server: %s", said)
		}
		check.OK(t, os.RemoveAll(data+".admin"))
	}
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

// oneClient is a line of an import.
const oneClient = `{"client_id": "shop", "token_endpoint_auth_method": "none", "redirect_uris": ["http://127.0.0.1/"]}`

// TestNewStoreIsConfirmed: a command in the wrong directory must not make another store without a word. All that user create and
// an import read is the password or the lines, and no answer.
func TestNewStoreIsConfirmed(t *testing.T) {
	t.Chdir(t.TempDir())
	path, err := filepath.Abs("oauth-server.db")
	check.OK(t, err)
	const no = "nothing was changed: give another --data, or confirm with --create\n"
	for _, tt := range []struct {
		args, stdin string
		makes       bool
		says        string
	}{
		{"client create shop", "", false, no},
		{"client create shop", "n\n", false, no},
		{"client create shop", "\n", false, no},
		{"user create ada --password-stdin", adaPassword + "\n", false, no},
		{"client import -", oneClient, false, no},
		{"client create shop", "y\n", true, "Continue? [y/N] "},
		{"client create shop --create", "", true, "using the store " + path + " directly\n"},
		{"user create ada --password-stdin --create", adaPassword, true, "using the store " + path + " directly\n"},
		{"client import - --create", oneClient, true, "using the store " + path + " directly\n"},
	} {
		out, stderr, status := run(t, tt.stdin, strings.Fields(tt.args)...)
		check.Equal(t, tt.args+": status is good", status == command.ExitOK, tt.makes)
		check.Equal(t, tt.args+": has output", out != "", tt.makes)
		check.Equal(t, tt.args+": asks", strings.Contains(stderr, "[y/N]"), !strings.Contains(tt.args, "--create"))
		has(t, stderr, path, tt.says)
		check.Equal(t, tt.args+": makes a data file", os.Remove(path) == nil, tt.makes)
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
		runFails(t, command.ExitFailed, "it is empty", "", on(empty, line)...)
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
		check.Equal(t, line, strings.Count(runSays(t, "", on(data, line)...), "using the store "+data+" directly\n"), 1)
	}
	db := database(t)
	runOK(t, "", append([]string{"migrate", "up"}, db...)...)
	has(t, runSays(t, "", append([]string{"client", "create", "shop"}, db...)...), "using the database ", "within two seconds")
}

// TestNoStoreForNothing: a command that fails for what it was given, or only checks, neither asks for a data
// file nor makes one.
func TestNoStoreForNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	const good, bad = oneClient, `{"client_id": "x"}`
	for _, tt := range []struct {
		in, args string
		status   int
		says     string
	}{
		{"", "user import nosuch.jsonl --create", command.ExitUsage, "nosuch.jsonl"},
		{"y\n", "client create bad\x01id", command.ExitUsage, "id"},
		{"y\n", "client create bad\x01id --create", command.ExitUsage, "id"},
		{"y\n", "client create x --scope openid", command.ExitUsage, "openid"},
		{"password2026", "user create ada --password-stdin --create", command.ExitUsage, "easy to guess"},
		{adaPassword, "user create a\x01b --password-stdin --create", command.ExitUsage, "username"},
		{good, "client import - --check", command.ExitOK, "the file is valid: 1 client"},
		{good + "\n" + good, "client import - --check --create", command.ExitFailed, "1 of 2 lines are valid"},
		{good + "\n" + bad, "client import - --create", command.ExitFailed, "Nothing was imported"},
		{bad, "client import - --create --partial", command.ExitFailed, "imported 0 clients"},
		{"", "client import - --create", command.ExitOK, "imported 0 clients"},
	} {
		stdout, stderr, status := run(t, tt.in, strings.Fields(tt.args)...)
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

// TestCompletionsOfTheStore: what is offered comes from where the command would work: from the store, or
// from the server that has it open, without an admin client. Nothing is made or said.
func TestCompletionsOfTheStore(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, typed := range []string{"client show ", "client create x --create --label "} {
		check.Equal(t, typed+" without a store", completed(t, typed), "")
	}
	if _, err := os.Stat("oauth-server.db"); err == nil {
		t.Fatal("a data file was made")
	}
	newClient(t, "shop --create --label team=payments")
	newClient(t, "app")
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
			check.Equal(t, typed+where, completed(t, typed), want)
		}
	}
}
