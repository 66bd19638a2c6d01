package cli

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"oauth-server/internal/admin/registry"
	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/secret"
)

func TestExitStatusAndMessage(t *testing.T) {
	data := storeFile(t)
	runOK(t, "", "client", "create", "taken", "--data", data)
	runOK(t, "a long passphrase for ada\n", "user", "create", "ada", "--password-stdin", "--data", data)
	tests := []struct {
		name   string
		args   string
		status int
		want   string // all of standard error
	}{
		{"unknown command", "verzion", 2, `unknown command "verzion"; did you mean version?`},
		{"unknown subcommand", "client creat", 2, `client: unknown command "creat"; did you mean create?`},
		{"unknown command in front", "clinet list --data x", 2, `unknown command "clinet"; did you mean client?`},
		{"unknown subcommand with a flag", "limits dryrun shop on --yes", 2, `limits: unknown command "dryrun"; did you mean dry-run?`},
		{"version as a flag", "--version", 2, "unknown flag: --version; the command is oauth-server version"},
		{"unknown flag of a group", "limits --yes", 2, "unknown flag: --yes; see oauth-server limits --help"},
		{"unknown flag", "serve --lissten x", 2, "unknown flag: --lissten; see oauth-server serve --help"},
		{"unknown output", "version -o xml", 2, "-o xml: the output is text or json"},
		{"argument missing", "client create", 2, "client create: ID is missing"},
		{"argument too many", "client show a b", 2, `client show: unexpected argument "b"`},
		{"bad setting", "serve --listen 9096", 2, `listen: "9096" is not host:port (--listen)`},
		{"two stores", "client list --data x --mongodb-uri mongodb://h", 2, "store: embedded (--data) and mongodb (--mongodb-uri) cannot be used together"},
		{"demo with a store", "serve --demo --data x", 2, "--demo uses a temporary store: leave out --data, --mongodb-uri and store settings"},
		{"no such configuration", "serve --config no-such.yaml", 2, "--config: open no-such.yaml: no such file or directory"},
		{"unknown grant", "client create x --grant implicit --data " + data, 2, `grant_types[0]: unknown grant type "implicit"`},
		{"no redirect URI", "client create x --public --data " + data, 2, "redirect_uris: the authorization_code grant needs at least one"},
		{"password not given", "user create ada --data " + data, 2, "standard input is not a terminal: give the password with --password-stdin"},
		{"empty password", "user create ada --password-stdin --data " + data, 2, "password: must have at least 8 characters and at most 1024 bytes"},
		{"client exists", "client create taken --data " + data, 1, `client "taken" already exists`},
		{"client of a user's name", "client create ada --data " + data, 1, `user "ada" has this name, and their tokens would have the same sub; choose another ID`},
		{"public resource server", "client create x --public --redirect-uri https://x.example/cb --resource-server --data " + data, 2, "resource_server: a public client cannot introspect tokens (RFC 7662 2.1)"},
		{"client missing", "client show nobody --data " + data, 1, `client "nobody" does not exist`},
		{"client to rotate missing", "client rotate-secret nobody --data " + data, 1, `client "nobody" does not exist`},
		{"client to delete missing", "client delete nobody --data " + data, 1, `client "nobody" does not exist`},
		{"user missing", "user delete nobody --data " + data, 1, `user "nobody" does not exist`},
		{"no such data file", "client list --data no-such.db", 1, "data file no-such.db does not exist: give --data, or create it with serve or a create command"},
		{"help", "serve --help", 0, ""},
		{"group", "client", 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, stderr, status := run(t, "", strings.Fields(tt.args)...)
			if status != tt.status {
				t.Errorf("status %d, want %d", status, tt.status)
			}
			want := ""
			if tt.want != "" {
				want = "oauth-server: " + tt.want + "\n"
			}
			if stderr := withoutPlace(stderr); stderr != want {
				t.Errorf("stderr %q, want %q", stderr, want)
			}
		})
	}
}

func TestEveryProblemHasItsLine(t *testing.T) {
	_, stderr, status := run(t, "", "serve", "--listen", "x", "--log-level", "loud", "--tokens-code-ttl", "1h")
	if status != command.ExitUsage || strings.Count(stderr, "\n") != 3 || strings.Count(stderr, "oauth-server: ") != 3 {
		t.Errorf("status %d, stderr:\n%s", status, stderr)
	}
}

func TestClientCommands(t *testing.T) {
	store := []string{"--data", storeFile(t)}
	with := func(args ...string) []string { return append(args, store...) }
	var made, rotated, public credentials
	runJSON(t, &made, "", with("client", "create", "shop", "--scope", "orders:read", "--scope", "orders:write")...)
	if made.ClientID != "shop" || len(made.ClientSecret) != 43 {
		t.Errorf("%+v", made)
	}
	runJSON(t, &public, "", with("client", "create", "app", "--public", "--redirect-uri", "http://127.0.0.1/callback")...)
	if public != (credentials{ClientID: "app"}) {
		t.Errorf("a public client got %+v", public)
	}
	runJSON(t, &rotated, "", with("client", "rotate-secret", "shop")...)
	if rotated.ClientID != "shop" || rotated.ClientSecret == made.ClientSecret || len(rotated.ClientSecret) != 43 {
		t.Errorf("rotated to %+v from %+v", rotated, made)
	}
	var shown struct {
		ClientID   string   `json:"client_id"`
		GrantTypes []string `json:"grant_types"`
		Scopes     []string `json:"scopes"`
	}
	runJSON(t, &shown, "", with("client", "show", "shop")...)
	if !slices.Equal(shown.GrantTypes, []string{"client_credentials"}) || !slices.Equal(shown.Scopes, []string{"orders:read", "orders:write"}) {
		t.Errorf("%+v", shown)
	}
	has(t, runOK(t, "", with("client", "list")...), "CLIENT ID", "app        public", "shop       confidential", "authorization_code refresh_token")
	runJSON(t, &map[string]any{}, "", with("client", "delete", "shop")...)
	var left []struct {
		ClientID string `json:"client_id"`
	}
	runJSON(t, &left, "", with("client", "list")...)
	if len(left) != 1 || left[0].ClientID != "app" {
		t.Errorf("left: %+v", left)
	}
}

// --admin gives all, --admin=read less, and a scope that contradicts it is refused.
func TestAdminClients(t *testing.T) {
	data := storeFile(t)
	create := func(id string, args ...string) (stderr string, status int) {
		_, stderr, status = run(t, "", append([]string{"client", "create", id, "--data", data}, args...)...)
		return stderr, status
	}
	for _, tt := range []struct {
		args   string
		status int
		says   string
		scopes []string
		grants string // of a client that is made
	}{
		{"--admin", command.ExitOK, "", []string{"ratelimit:read", "ratelimit:write", "registrations:read", "registrations:write"}, "client_credentials"},
		{"--admin=true", command.ExitOK, "", []string{"ratelimit:read", "ratelimit:write", "registrations:read", "registrations:write"}, "client_credentials"},
		{"--admin=read", command.ExitOK, "", []string{"ratelimit:read", "registrations:read"}, "client_credentials"},
		{"--admin=read --scope ratelimit:read", command.ExitOK, "", []string{"ratelimit:read", "registrations:read"}, "client_credentials"},
		{"--admin --scope ratelimit:write", command.ExitOK, "", []string{"ratelimit:write", "ratelimit:read", "registrations:read", "registrations:write"}, "client_credentials"},
		{"--admin --scope ratelimit:read", command.ExitUsage, "use --admin=read", nil, ""},
		{"--admin=read --scope ratelimit:write", command.ExitUsage, "leave out the scope ratelimit:write", nil, ""},
		{"--admin=some", command.ExitUsage, `"some" is not one of read, write`, nil, ""},
		{"--admin --grant authorization_code --redirect-uri http://127.0.0.1/", command.ExitOK, "only if they are operators", []string{"ratelimit:read", "ratelimit:write", "registrations:read", "registrations:write"}, "authorization_code"},
		{"--admin=read --grant password", command.ExitOK, "user operator NAME on|read", []string{"ratelimit:read", "registrations:read"}, "password"},
		{"--admin read", command.ExitUsage, `"read" is a separate argument: write --admin=read`, nil, ""},
		{"--admin --redirect-uri http://127.0.0.1/", command.ExitOK, "only if they are operators", []string{"ratelimit:read", "ratelimit:write", "registrations:read", "registrations:write"}, "authorization_code refresh_token"},
		{"--admin --public --redirect-uri http://127.0.0.1/", command.ExitOK, "only if they are operators", []string{"ratelimit:read", "ratelimit:write", "registrations:read", "registrations:write"}, "authorization_code refresh_token"},
		{"--admin --grant client_credentials --grant password", command.ExitOK, "the client's secret alone is enough to read and change limits, clients and users", []string{"ratelimit:read", "ratelimit:write", "registrations:read", "registrations:write"}, "client_credentials password"},
		{"--admin=read --grant password --grant client_credentials", command.ExitOK, "the client's secret alone is enough to read limits, clients and users", []string{"ratelimit:read", "registrations:read"}, "password client_credentials"},
	} {
		id := "c" + strings.ReplaceAll(tt.args, " ", "_")
		stderr, status := create(id, strings.Fields(tt.args)...)
		if status != tt.status || !strings.Contains(stderr, tt.says) || tt.says == "" && strings.Contains(stderr, "operator") {
			t.Errorf("%s: status %d: %s", tt.args, status, stderr)
		}
		if tt.status != command.ExitOK {
			continue
		}
		if alone := strings.Contains(stderr, "secret alone is enough"); alone != strings.Contains(tt.says, "alone") {
			t.Errorf("%s: %s", tt.args, stderr)
		}
		var shown struct {
			Scopes []string `json:"scopes"`
			Grants []string `json:"grant_types"`
		}
		runJSON(t, &shown, "", "client", "show", id, "--data", data)
		if !slices.Equal(shown.Scopes, tt.scopes) || strings.Join(shown.Grants, " ") != tt.grants {
			t.Errorf("%s: scopes %v, grants %v", tt.args, shown.Scopes, shown.Grants)
		}
	}
}

func TestOperators(t *testing.T) {
	store := []string{"--data", storeFile(t)}
	with := func(args ...string) []string { return append(args, store...) }
	level := func() (level string) {
		t.Helper()
		var users []registry.User
		runJSON(t, &users, "", with("user", "list")...)
		return string(users[0].Operator)
	}
	for _, tt := range []struct{ args, want string }{
		{"user create ada --password-stdin --operator=read", "read"},
		{"user operator ada on", "write"},
		{"user operator ada off", ""},
		{"user operator ada read", "read"},
	} {
		runOK(t, adaPassword, with(strings.Fields(tt.args)...)...)
		if got := level(); got != tt.want {
			t.Errorf("after %s: %q", tt.args, got)
		}
	}
	for args, says := range map[string]string{
		"user operator nobody on": `user "nobody" does not exist`, "user operator ada yes": `"yes" is not one of on, read, off`,
		"user operator ada": "on|read|off is missing", "user create bob --password-stdin --operator=much": "not one of read, write",
		"user create --password-stdin --operator read": "write --operator=read",
	} {
		if _, stderr, status := run(t, adaPassword, with(strings.Fields(args)...)...); status == command.ExitOK || !strings.Contains(stderr, says) {
			t.Errorf("%s: status %d: %s", args, status, stderr)
		}
	}
}

func TestSecretsAreShownOnceAndNowhereElse(t *testing.T) {
	data := storeFile(t)
	var made credentials
	runJSON(t, &made, "", "client", "create", "shop", "--data", data)
	for _, args := range [][]string{{"client", "show", "shop"}, {"client", "list"}, {"client", "list", "-o", "json"}} {
		stdout, stderr, status := run(t, "", append(args, "--data", data)...)
		if digest := secret.DigestOf(made.ClientSecret).String(); status != command.ExitOK || strings.Contains(stdout+stderr, made.ClientSecret) ||
			strings.Contains(stdout, digest[:8]) || strings.Contains(stdout, "sha256") {
			t.Errorf("%v: status %d:\n%s", args, status, stdout)
		}
	}
}

func TestResourceServer(t *testing.T) {
	data := storeFile(t)
	runOK(t, "", "client", "create", "api", "--resource-server", "--data", data)
	for _, step := range []struct {
		state string
		want  bool
	}{{"", true}, {"--resource-server=false", false}, {"--resource-server", true}} {
		if step.state != "" {
			runOK(t, "", "client", "update", "api", step.state, "--data", data)
		}
		var shown struct {
			ResourceServer bool `json:"resource_server"`
		}
		runJSON(t, &shown, "", "client", "show", "api", "--data", data)
		if shown.ResourceServer != step.want {
			t.Errorf("after %q it is %v", step.state, shown.ResourceServer)
		}
	}
}

func TestEmptyListsAreJSONArrays(t *testing.T) {
	data := storeFile(t)
	for _, args := range []string{"create shop", "delete shop"} {
		runOK(t, "", strings.Fields("client "+args+" --data "+data)...)
	}
	for _, kind := range []string{"client", "user"} {
		check.Equal(t, kind+" list", runOK(t, "", kind, "list", "--data", data, "-o", "json"), "[]\n")
	}
}

func TestCheckConfig(t *testing.T) {
	check.Equal(t, "output", runOK(t, "", "serve", "--check-config"), "ok\n")
	runFails(t, command.ExitUsage, "log.level", "", "serve", "--check-config", "--log-level", "loud")
	out, stderr, status := run(t, "", "serve", "--check-config", "--log-level", "loud", "-o", "json")
	var got struct {
		OK       bool
		Problems []struct{ Path, Message, Origin string }
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != command.ExitUsage || stderr != "" {
		t.Fatalf("status %d, %v: %s%s", status, err, out, stderr)
	}
	if got.OK || len(got.Problems) != 1 || got.Problems[0].Path != "log.level" || got.Problems[0].Origin != "--log-level" {
		t.Errorf("%+v", got)
	}
}

// TestProxiesAreAskedFor: behind a proxy that is not mentioned, all clients would count as one.
func TestProxiesAreAskedFor(t *testing.T) {
	public := []string{"serve", "--issuer", "https://auth.example.com", "--data", storeFile(t)}
	for _, args := range [][]string{public, append(public, "--check-config")} {
		has(t, runFails(t, command.ExitUsage, "trusted_proxies: is required", "", args...), "list the addresses", "set it to none")
	}
	for _, proxies := range []string{"none", "10.8.3.4"} {
		check.Equal(t, "output", runOK(t, "", append(public, "--check-config", "--trusted-proxies", proxies)...), "ok\n")
	}
}

func TestEnvironmentStandsInForFlags(t *testing.T) {
	var out, errs bytes.Buffer
	c := &command.Env{In: strings.NewReader(""), Out: &out, ErrOut: &errs, Environ: []string{"OAUTH_CHECK_CONFIG=1"}}
	if status := execute(t.Context(), c, []string{"serve"}); status != command.ExitOK || out.String() != "ok\n" {
		t.Errorf("status %d: %s%s", status, &out, &errs)
	}
	c.Environ = []string{"OAUTH_DEMO=perhaps"}
	if status := execute(t.Context(), c, []string{"serve"}); status != command.ExitUsage || !strings.Contains(errs.String(), `OAUTH_DEMO: "perhaps"`) {
		t.Errorf("status %d: %s", status, &errs)
	}
}

func TestPrintConfig(t *testing.T) {
	out, _, status := run(t, "", "serve", "--print-config", "--mongodb-uri", "mongodb://me:hush@db", "--tokens-access-ttl", "5m")
	if status != command.ExitOK || strings.Contains(out, "hush") || !strings.Contains(out, "access_ttl: 5m") {
		t.Errorf("status %d:\n%s", status, out)
	}
	var fields struct {
		Tokens map[string]string
	}
	runJSON(t, &fields, "", "serve", "--print-config", "--tokens-access-ttl", "5m")
	if fields.Tokens["access_ttl"] != "5m" {
		t.Errorf("%+v", fields)
	}
}

// mostCommands is how many commands there may be, without groups, topics and cobra's own.
const mostCommands = 55

// TestHelp: there are not too many commands, each help text fits on one screen, and each command
// has two examples, of itself.
func TestHelp(t *testing.T) {
	count := 0
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
		if !cmd.Runnable() { // a topic
			return
		}
		var b bytes.Buffer
		cmd.SetOut(&b)
		command.Help(cmd, nil)
		if n := strings.Count(b.String(), "\n"); n > 40 {
			t.Errorf("%s: %d lines", cmd.CommandPath(), n)
		}
		for line := range strings.Lines(b.String()) {
			if utf8.RuneCountInString(strings.TrimRight(line, "\n")) > 100 {
				t.Errorf("%s: this line is too long: %s", cmd.CommandPath(), line)
			}
		}
		if cmd.HasSubCommands() {
			return
		}
		count++
		if n := strings.Count(cmd.Example, cmd.CommandPath()); n < 2 {
			t.Errorf("%s: %d examples", cmd.CommandPath(), n)
		}
	}
	root, _ := newRoot(&command.Env{})
	visit(root)
	if count > mostCommands {
		t.Errorf("there are %d commands", count)
	}
	t.Logf("%d commands", count)
}
