package cli

import (
	"bytes"
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
		{"unknown command to help", "help nonsense", 2, `unknown command "nonsense"`},
		{"unknown subcommand to help", "help limits lst", 2, `limits: unknown command "lst"; did you mean get or list or set?`},
		{"too much to help", "help limits set shop", 2, `limits set: unknown command "shop"`},
		{"unknown shell", "completion csh", 2, `completion: unknown command "csh"; did you mean bash or fish or zsh?`},
		{"two shells", "completion bash zsh", 2, `completion bash: unexpected argument "zsh"`},
		{"no number", "limits top --limit x", 2, `--limit: "x" is not a whole number; see oauth-server limits top --help`},
		{"no duration", "client rotate-secret shop --overlap 1y", 2, `--overlap: "1y" is not a duration, such as 90s, 10m or 24h; see oauth-server client rotate-secret --help`},
		{"neither true nor false", "limits set shop --check=x", 2, `--check: "x" is neither true nor false; see oauth-server limits set --help`},
		{"unknown right", "client create x --admin=foo", 2, `--admin: "foo" is not one of read, write; see oauth-server client create --help`},
		{"version as a flag", "--version", 2, "unknown flag: --version; the command is oauth-server version"},
		{"unknown flag of a group", "limits --yes", 2, "unknown flag: --yes; see oauth-server limits --help"},
		{"unknown flag", "serve --lissten x", 2, "unknown flag: --lissten; see oauth-server serve --help"},
		{"unknown output", "version -o xml", 2, "-o xml: the output is text or json"},
		{"argument missing", "client create", 2, "client create: ID is missing"},
		{"argument too many", "client show a b", 2, `client show: unexpected argument "b"`},
		{"bad setting", "serve --listen 9096", 2, `listen: "9096" is not host:port (--listen)`},
		{
			"three problems", "serve --listen x --log-level loud --tokens-code-ttl 1h", 2,
			"listen: \"x\" is not host:port (--listen)\noauth-server: log.level: \"loud\" is not one of \"debug\", \"info\", \"warn\", \"error\" (--log-level)\n" +
				"oauth-server: tokens.code_ttl: must be from 1s to 10m, not 1h (--tokens-code-ttl)",
		},
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

func TestClientCommands(t *testing.T) {
	data := storeFile(t)
	made := newClient(t, "shop --scope orders:read --scope orders:write", "--data", data)
	check.Equal(t, "public", newClient(t, "app --public --redirect-uri http://127.0.0.1/callback", "--data", data), credentials{ClientID: "app"})
	var rotated credentials
	runJSON(t, &rotated, "", on(data, "client rotate-secret shop")...)
	for _, c := range []credentials{made, rotated} {
		check.Equal(t, "ID", c.ClientID, "shop")
		check.Equal(t, "length of the secret", len(c.ClientSecret), 43)
	}
	check.Equal(t, "the secret is another", rotated.ClientSecret != made.ClientSecret, true)
	for _, args := range []string{"client show shop", "client list", "client list -o json"} {
		stdout, stderr, _ := run(t, "", on(data, args)...)
		hasNot(t, stdout+stderr, rotated.ClientSecret, secret.DigestOf(rotated.ClientSecret).String()[:8], "sha256")
	}
	type shown struct {
		Grants         []string `json:"grant_types"`
		Scopes         []string `json:"scopes"`
		ResourceServer bool     `json:"resource_server"`
	}
	for _, step := range []struct {
		args string
		is   bool
	}{{"show", false}, {"update --resource-server", true}, {"show", true}, {"update --resource-server=false", false}} {
		var got shown
		runJSON(t, &got, "", on(data, "client "+step.args+" shop")...)
		check.Equal(t, step.args, got, shown{[]string{"client_credentials"}, []string{"orders:read", "orders:write"}, step.is})
	}
	has(t, runOK(t, "", on(data, "client list")...), "CLIENT ID", "app        public", "shop       confidential", "authorization_code refresh_token")
	runOK(t, "", on(data, "client delete shop")...)
	check.Equal(t, "left", clientIDs(t, data), []string{"app"})
	runOK(t, "", on(data, "client delete app")...)
	for _, kind := range []string{"client", "user"} {
		check.Equal(t, "empty list of "+kind, runOK(t, "", on(data, kind+" list -o json")...), "[]\n")
	}
}

// --admin gives all, --admin=read less, and a scope that contradicts it is refused.
func TestAdminClients(t *testing.T) {
	data := storeFile(t)
	const (
		read  = "ratelimit:read registrations:read"
		write = "ratelimit:read ratelimit:write registrations:read registrations:write"
		alone = "the client's secret alone is enough to "
	)
	for _, tt := range []struct {
		args   string
		status int
		says   string
		scopes string // sorted
		grants string
	}{
		{"--admin", command.ExitOK, "", write, "client_credentials"},
		{"--admin=true", command.ExitOK, "", write, "client_credentials"},
		{"--admin=read", command.ExitOK, "", read, "client_credentials"},
		{"--admin=read --scope ratelimit:read", command.ExitOK, "", read, "client_credentials"},
		{"--admin --scope ratelimit:write", command.ExitOK, "", write, "client_credentials"},
		{"--admin --scope ratelimit:read", command.ExitUsage, "use --admin=read", "", ""},
		{"--admin=read --scope ratelimit:write", command.ExitUsage, "leave out the scope ratelimit:write", "", ""},
		{"--admin=some", command.ExitUsage, `"some" is not one of read, write`, "", ""},
		{"--admin read", command.ExitUsage, `"read" is a separate argument: write --admin=read`, "", ""},
		{"--admin --grant authorization_code --redirect-uri http://127.0.0.1/", command.ExitOK, "only if they are operators", write, "authorization_code"},
		{"--admin=read --grant password", command.ExitOK, "user operator NAME on|read", read, "password"},
		{"--admin --redirect-uri http://127.0.0.1/", command.ExitOK, "only if they are operators", write, "authorization_code refresh_token"},
		{"--admin --public --redirect-uri http://127.0.0.1/", command.ExitOK, "only if they are operators", write, "authorization_code refresh_token"},
		{"--admin --grant client_credentials --grant password", command.ExitOK, alone + "read and change limits, clients and users", write, "client_credentials password"},
		{"--admin=read --grant password --grant client_credentials", command.ExitOK, alone + "read limits, clients and users", read, "password client_credentials"},
	} {
		id := "c" + strings.ReplaceAll(tt.args, " ", "_")
		_, stderr, status := run(t, "", on(data, "client create "+id+" "+tt.args)...)
		check.Equal(t, tt.args+": "+stderr, status, tt.status)
		has(t, stderr, tt.says)
		check.Equal(t, tt.args+" warns of operators", strings.Contains(stderr, "operator"), tt.says != "" && tt.status == command.ExitOK)
		check.Equal(t, tt.args+" warns of the secret alone", strings.Contains(stderr, alone), strings.HasPrefix(tt.says, alone))
		if tt.status != command.ExitOK {
			continue
		}
		var shown struct {
			Scopes []string `json:"scopes"`
			Grants []string `json:"grant_types"`
		}
		runJSON(t, &shown, "", on(data, "client show "+id)...)
		slices.Sort(shown.Scopes)
		check.Equal(t, tt.args, strings.Join(shown.Scopes, " ")+", "+strings.Join(shown.Grants, " "), tt.scopes+", "+tt.grants)
	}
}

func TestOperators(t *testing.T) {
	data := storeFile(t)
	for _, tt := range []struct{ args, want string }{
		{"user create ada --password-stdin --operator=read", "read"},
		{"user operator ada on", "write"},
		{"user operator ada off", ""},
		{"user operator ada read", "read"},
	} {
		runOK(t, adaPassword, on(data, tt.args)...)
		var users []registry.User
		runJSON(t, &users, "", on(data, "user list")...)
		check.Equal(t, "after "+tt.args, string(users[0].Operator), tt.want)
	}
	runFails(t, command.ExitFailed, `user "nobody" does not exist`, "", on(data, "user operator nobody on")...)
	for args, says := range map[string]string{
		"user operator ada yes": `"yes" is not one of on, read, off`, "user operator ada": "on|read|off is missing",
		"user create bob --password-stdin --operator=much": "not one of read, write", "user create --password-stdin --operator read": "write --operator=read",
	} {
		runFails(t, command.ExitUsage, says, adaPassword, on(data, args)...)
	}
}

func TestCheckConfig(t *testing.T) {
	check.Equal(t, "output", runOK(t, "", "serve", "--check-config"), "ok\n")
	runFails(t, command.ExitUsage, "log.level", "", "serve", "--check-config", "--log-level", "loud")
	out, stderr, status := run(t, "", "serve", "--check-config", "--log-level", "loud", "-o", "json")
	check.Equal(t, "status", status, command.ExitUsage)
	check.Equal(t, "errors", stderr, "")
	has(t, out, `"ok": false`, `"path": "log.level"`, `"origin": "--log-level"`)
	check.Equal(t, "problems", strings.Count(out, `"path"`), 1)
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
	out, _, status := runWith(t, []string{"OAUTH_CHECK_CONFIG=1"}, "", "serve")
	check.Equal(t, out, status, command.ExitOK)
	_, stderr, status := runWith(t, []string{"OAUTH_DEMO=perhaps"}, "", "serve")
	check.Equal(t, "status", status, command.ExitUsage)
	has(t, stderr, `OAUTH_DEMO: "perhaps"`)
}

func TestPrintConfig(t *testing.T) {
	out := runOK(t, "", "serve", "--print-config", "--mongodb-uri", "mongodb://me:hush@db", "--tokens-access-ttl", "5m")
	has(t, out, "access_ttl: 5m")
	hasNot(t, out, "hush")
	has(t, runOK(t, "", "serve", "--print-config", "--tokens-access-ttl", "5m", "-o", "json"), `"access_ttl": "5m"`)
}

// mostCommands is how many commands there may be, without groups, topics and cobra's own.
const mostCommands = 55

// TestHelp: there are not too many commands, each help text fits on one screen, and each command
// and group has two examples, of itself.
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
		if !cmd.HasSubCommands() {
			count++
		}
		if !cmd.HasParent() { // its text has one
			return
		}
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
