package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/simulate"
)

// inTemp writes files into a directory, and makes it the present one.
func inTemp(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		check.OK(t, os.WriteFile(name, []byte(text), 0o600))
	}
}

// burst is a CSV log of n requests of a client for each of the given users, at once.
func burst(n int, client string, users ...string) string {
	var log strings.Builder
	log.WriteString("time,client,user,grant\n")
	for range n {
		for _, user := range users {
			grant := "refresh_token"
			if user == "" {
				grant = "client_credentials"
			}
			fmt.Fprintf(&log, "2026-11-16T09:00:00Z,%s,%s,%s\n", client, user, grant)
		}
	}
	return log.String()
}

// TestSimulateBadInput: what cannot be is said with the flag, or the file, the line and the field, all at once.
func TestSimulateBadInput(t *testing.T) {
	const bad = `settings:
  default:
    user:
      - { requests: 0, window: 60s }
policies:
  shop:
    tier: silver
    client:
      - { requests: 5, window: 1 }
  batch: { trusted: true, over_limit: reuse, criticality: high, colour: red }
`
	inTemp(t, map[string]string{
		"log.csv": burst(3, "shop", "ada"), "bad.yaml": bad, "empty.csv": "time,client\n", "void.csv": "", "none.csv.gz": "\x1f\x8b\x08",
		"mode.yaml": "mode: enforce\nrate_limit: {}\n", "typo.yaml": "rate_limits: {}\n",
		"config.yaml": "issuer: https://auth.example.com\nrate_limit:\n  default:\n    user: [ { requests: 10, window: 0s } ]\n",
		"broken.csv":  "time,client\nyesterday,shop\n2026-11-16T09:00:00Z,shop\n",
	})
	for _, tt := range []struct {
		args   string
		status int
		want   []string
	}{
		{"", command.ExitUsage, []string{"simulate: LOG is missing; use - for standard input"}},
		{"log.csv --wrong", command.ExitUsage, []string{"unknown flag: --wrong; see oauth-server simulate --help"}},
		{"none.csv", command.ExitFailed, []string{"none.csv", "no such file"}},
		{"bad.yaml", command.ExitFailed, []string{"unknown format of bad.yaml: give --format"}},
		{"void.csv", command.ExitFailed, []string{"void.csv has nothing to read.", "no token requests in void.csv"}},
		{"log.csv --format xml", command.ExitUsage, []string{`--format: "xml" is not one of auto, oauth-server`}},
		{"log.csv --zone Mars", command.ExitUsage, []string{`--zone: unknown time zone "Mars"`}},
		{"log.csv --map time=time,client=ap", command.ExitUsage, []string{`log.csv: mapping: client: no column "ap" in the first line, which has "time", "client"`}},
		{"log.csv --format okta --map time=time", command.ExitUsage, []string{"takes no mapping"}},
		{"log.csv --format csv --map nobody=x", command.ExitUsage, []string{`--map: `, `unknown key "nobody"`}},
		{
			"log.csv --limit 0/60s,5/1 --target 200% --of users --preset no --top -1 --max-keys 0 --token-lifetime 1ms", command.ExitUsage,
			[]string{
				"--limit 0/60s.requests: 0 is not between", `--limit 5/1.window: "1" is not a duration`, `--target: "200%" is not a share`,
				`--of: "users" is neither`, `--preset: unknown preset "no"`, "--top: -1", "--max-keys: 0", "--token-lifetime: 1ms",
			},
		},
		{"log.csv --write x.yaml --of requests", command.ExitUsage, []string{"--write: needs --target", "--of: needs --target"}},
		{"log.csv --target 0.999", command.ExitUsage, []string{"--target: 0.999 is ambiguous: write 0.999% or 99.9%"}},
		{"log.csv --limit 5/60s,", command.ExitUsage, []string{`--limit: "5/60s," has a comma with nothing before or after it`}},
		{"log.csv --max-keys 99999999999", command.ExitUsage, []string{"--max-keys: 99999999999 is not from 1 to 1073741824"}},
		{"log.csv --policies mode.yaml", command.ExitUsage, []string{"mode: unknown field; the fields are issuer, "}},
		{"log.csv --policies typo.yaml", command.ExitUsage, []string{"rate_limits: unknown field; did you mean rate_limit? (typo.yaml:1)"}},
		{
			"log.csv --policies bad.yaml", command.ExitUsage,
			[]string{
				"settings.default.user[0].requests: 0 is not between", "bad.yaml:4", "policies.shop.client[0].window", "bad.yaml:9",
				`policies.shop.tier: tier "silver" does not exist`, "bad.yaml:7", "policies.batch.colour: unknown field", "policies.batch.over_limit: a trusted client",
				`policies.batch.criticality: "high" is not one of "critical_plus", "critical", "sheddable_plus", "sheddable" (bad.yaml:10)`,
			},
		},
		{"log.csv --policies config.yaml", command.ExitUsage, []string{"rate_limit.default.user[0].window", "config.yaml:4"}},
		{"log.csv --policies bad.yaml --policies bad.yaml", command.ExitUsage, []string{"are of the same kind"}},
		{"empty.csv", command.ExitFailed, []string{"no token requests in empty.csv"}},
		{"none.csv.gz", command.ExitFailed, []string{"none.csv.gz has nothing to read.", "Of 1 entry, 0 are token requests, 1 cannot be read (100 %):", "the archive is truncated"}},
		{"broken.csv --strict", command.ExitFailed, []string{"stopped at the first unreadable line", "broken.csv:2", "time"}},
	} {
		_, stderr, status := run(t, "", append([]string{"simulate"}, strings.Fields(tt.args)...)...)
		if status != tt.status {
			t.Errorf("%s: status %d, want %d", tt.args, status, tt.status)
		}
		has(t, tt.args+"\n"+stderr, tt.want...)
	}
}

// TestSimulatePolicies: a configuration file, a file of limits, and both, in any order; modes are kept if that is asked for.
func TestSimulatePolicies(t *testing.T) {
	inTemp(t, map[string]string{
		"log.csv":     burst(10, "shop", "ada", "") + strings.Join(strings.SplitAfter(burst(10, "batch", ""), "\n")[1:], ""),
		"config.yaml": "issuer: https://auth.example.com\nrate_limit:\n  mode: dry_run\n  default:\n    user: [ { requests: 4, window: 60s } ]\n  clients:\n    batch: { trusted: true }\n",
		"limits.yaml": "settings: { default: { client: [ { requests: 3, window: 60s } ] } }\ntiers: { gold: { client: [ { requests: 6, window: 60s } ] } }\n" +
			"policies: { shop: { tier: gold } }\noverrides: { shop ada: { user: [ { requests: 9, window: 60s } ] } }\ncandidates: { _default: { user: [ { requests: 1, window: 60s } ] } }\n",
	})
	for args, want := range map[string][2]uint64{ // denied of shop, and of batch
		"":                                       {0, 0},
		"--policies config.yaml":                 {6, 0},
		"--policies config.yaml --as-configured": {0, 0},
		"--policies limits.yaml":                 {1 + 4, 7},
		"--policies limits.yaml --policies config.yaml":     {1 + 4, 0},
		"--policies config.yaml --limit 2/60s,3/60s":        {6, 0},
		"--policies config.yaml --preset okta --limit 1/1s": {6, 0},
	} {
		var r simulate.Result
		runJSON(t, &r, "", append([]string{"simulate", "log.csv"}, strings.Fields(args)...)...)
		denied := map[string]uint64{}
		for _, c := range r.Clients {
			denied[c.ClientID] = c.Denied
		}
		check.Equal(t, args, [2]uint64{denied["shop"], denied["batch"]}, want)
		check.Equal(t, "lines", r.Lines.Read, uint64(30))
		switch {
		case strings.Contains(args, "3/60s"): // clients of their own are not concerned: batch is trusted
			check.Equal(t, "denied at 2/60s and 3/60s", [2]uint64{r.WhatIf[0].Denied, r.WhatIf[1].Denied}, [2]uint64{16, 14})
		case strings.Contains(args, "okta"):
			check.Equal(t, "names", []string{r.WhatIf[0].Limit, r.WhatIf[1].Limit}, []string{"1/1s", "okta"})
		}
	}
	_, stderr, _ := run(t, "", "simulate", "log.csv", "--policies", "limits.yaml")
	has(t, stderr, "Reading log.csv as csv.", "Ignoring the candidates")
}

// TestSimulateJSON: the fields that programs rely on, and names that are not trusted.
func TestSimulateJSON(t *testing.T) {
	inTemp(t, map[string]string{"log.csv": "time,client\n2026-11-16T09:00:00Z,\"evil\x1b[31m\"\nnever,shop\n"})
	stdout, stderr, status := run(t, "", "simulate", "log.csv", "-o", "json", "--format", "csv")
	check.Equal(t, "status", status, command.ExitOK)
	var got map[string]any
	runJSON(t, &got, "", "simulate", "log.csv", "--format", "csv")
	client := got["clients"].([]any)[0].(map[string]any) //nolint:forcetypeassert // a panic is a failure as well
	for _, field := range []string{"client_id", "requests", "admitted", "denied", "delayed", "reused", "banned", "failed", "users_hit", "refused_share"} {
		if _, there := client[field]; !there {
			t.Errorf("a client has no %s:\n%s", field, stdout)
		}
	}
	check.Equal(t, "unread", fmt.Sprint(got["lines"].(map[string]any)["unread"]), "1") //nolint:forcetypeassert // likewise
	has(t, stderr, "Of 3 entries, 1 is a token request, 1 is skipped as something else, 1 cannot be read (33.3 %):", "log.csv:3: ", "time")
	text, _, _ := run(t, "", "simulate", "log.csv", "--format", "csv")
	if strings.Contains(text, "\x1b") {
		t.Errorf("a name steers the terminal: %q", text)
	}
}

// TestSimulateFinds: the file that is written is what limits apply and limits candidate set take, and under it the share is
// untouched.
func TestSimulateFinds(t *testing.T) {
	s := newManaged(t)
	dir := t.TempDir()
	log, limits, found := filepath.Join(dir, "log.csv"), filepath.Join(dir, "limits.yaml"), filepath.Join(dir, "found.yaml")
	check.OK(t, os.WriteFile(log, []byte(burst(37, "shop", "ada", "")+strings.Join(strings.SplitAfter(burst(60, "batch", ""), "\n")[1:], "")), 0o600))
	check.OK(t, os.WriteFile(limits, []byte("settings: { mode: dry_run, default: { hide_headers: true, criticality: critical }, note: before }\ntiers: { gold: { criticality: sheddable } }\n"), 0o600))
	_, stderr, status := run(t, "", "simulate", log, "--policies", limits, "--target", "50%", "--limit", "10/60s,10/1h", "--write", found)
	check.Equal(t, "status", status, command.ExitOK)
	has(t, stderr, "Wrote the limits to "+found)
	var r simulate.Result
	runJSON(t, &r, "", "simulate", log, "--policies", found)
	check.Equal(t, "clients hit under the file", r.ClientsHit, 1)
	check.Equal(t, "clients", r.ClientCount, 2)

	s.limits(command.ExitOK, "candidate set --yes -f "+found)
	out, _ := s.limits(command.ExitOK, "get --candidate")
	has(t, out, "37/60s 37/1h")
	s.limits(command.ExitOK, "apply --yes -f "+found)
	out, _ = s.limits(command.ExitOK, "get")
	has(t, out, "37/60s 37/1h", "dry_run", "yes", "before")
	out, _ = s.limits(command.ExitOK, "export")
	again := filepath.Join(dir, "again.yaml")
	check.OK(t, os.WriteFile(again, []byte(out), 0o600))
	runJSON(t, &r, "", "simulate", log, "--policies", again)
	check.Equal(t, "clients hit under the export", r.ClientsHit, 1)

	s.says(command.ExitUsage, "candidate set --limit 5/60s -f "+found, "--file cannot be used")
	check.OK(t, os.WriteFile(again, []byte("tiers: {}\n"), 0o600))
	s.says(command.ExitUsage, "candidate set -f "+again, "has no limits")
}

// TestSimulateText: the table is cut, the totals are not; a column in which no client has anything is left out; one is not
// written as many, and answers that are all the same not as a range; long names are shortened.
func TestSimulateText(t *testing.T) {
	many := "time,client\n"
	for i := range 30 {
		many += fmt.Sprintf("2026-11-16T09:00:00Z,c%02d\n", i)
	}
	inTemp(t, map[string]string{
		"many.csv": many, "long.csv": burst(3, "begins-"+strings.Repeat("x", 500)+"-ends", "ada"),
		"two.csv":     burst(3, "shop", "ada") + strings.TrimPrefix(burst(1, "web", "bob"), "time,client,user,grant\n"),
		"days.csv":    "time,client,user,grant\n2026-11-16T09:00:00Z,shop,,refresh_token\n2026-11-17T09:00:00Z,shop,ada,refresh_token\n",
		"limits.yaml": "settings: { default: { user: [ { requests: 2, window: 60s } ] } }",
	})
	for _, tt := range []struct {
		args    string
		clients int // 0: not counted
		says    []string
	}{
		{"many.csv", 20, []string{"Of 30 requests of 30 clients"}},
		{"many.csv --top 3", 3, []string{"Of 30 requests of 30 clients"}},
		{"many.csv --top 99", 30, []string{"Of 30 requests of 30 clients"}},
		{"two.csv", 2, []string{"REFUSED  USERS HIT  WASTED\n"}},
		{"two.csv --limit 2/60s --target 50%", 0, []string{"leaves 50 % of the clients untouched"}},
		{"two.csv --policies limits.yaml", 2, []string{
			"USERS HIT  WORST MINUTE               BLOCKED  WAIT  WASTED\n", "web     1         1         0       0 %      0          -",
		}},
		{"days.csv --target 100%", 1, []string{"1 user request has no user and is counted for the client itself.\n", "Leaving out any one of the 2 days, it is 1.\n"}},
		{"long.csv", 1, []string{"begins-xxx", "xxx-ends ", "…"}},
	} {
		text, stderr, _ := run(t, "", append([]string{"simulate"}, strings.Fields(tt.args)...)...)
		if rows := regexp.MustCompile(`(?m)^(c\d\d|shop|web|begins-\S{1,90}) `).FindAllString(text, -1); tt.clients > 0 {
			check.Equal(t, "clients with "+tt.args, len(rows), tt.clients)
		}
		has(t, stderr+text, tt.says...)
	}
	var r simulate.Result
	runJSON(t, &r, "", "simulate", "many.csv")
	check.Equal(t, "clients as JSON", len(r.Clients), 30)
}

// TestSimulateDoc: the commands on the page print the text below them, up to the section on logs, which has a test
// of its own. A first line … stands for any text.
func TestSimulateDoc(t *testing.T) {
	page, err := os.ReadFile("../../docs/simulate.md")
	check.OK(t, err)
	sample, err := os.ReadFile("../../docs/samples/keycloak.json")
	check.OK(t, err)
	inTemp(t, map[string]string{"keycloak.json": string(sample)})
	commands, _, _ := strings.Cut(string(page), "\n## Logs for the simulator\n")
	blocks := regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(commands, -1)
	ran := 0
	for _, block := range blocks {
		for _, step := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			line, want, _ := strings.Cut(step, "\n")
			args := strings.Fields(line)
			var got string
			switch {
			case slices.Contains(args, "cat"):
				text, err := os.ReadFile(args[1])
				check.OK(t, err)
				got = string(text)
			case len(args) > 1 && args[1] == "simulate":
				stdout, stderr, _ := run(t, "", args[1:]...)
				got = stderr + stdout
				ran++
			default:
				continue
			}
			got, want = strings.TrimRight(got, "\n"), strings.TrimRight(want, "\n")
			if rest, shortened := strings.CutPrefix(want, "…\n"); shortened {
				got, want = got[max(len(got)-len(rest), 0):], rest
			}
			check.Equal(t, line, got, want)
		}
	}
	check.Equal(t, "commands that were run", ran >= 3, true)
}

// TestSimulateFilesCannotBeWritten: it is said before the long work, and nothing is left behind. A log that was not read to its
// end has no answer either.
func TestSimulateFilesCannotBeWritten(t *testing.T) {
	inTemp(t, map[string]string{"log.csv": burst(3, "shop", "ada"), "limits.yaml": "{}\n", "old.html": "", "bad.csv": burst(3, "shop", "ada") + "yesterday,shop,ada,refresh_token\n"})
	for _, tt := range []struct {
		args   string
		status int
		want   string
	}{
		{"log.csv --report none/out.html", command.ExitFailed, "--report: open none/out.html: no such file"},
		{"log.csv --target 50% --write log.csv", command.ExitUsage, "--write: refusing to overwrite log.csv: it is an input; name another file"},
		{"log.csv --target 50% --write ./log.csv", command.ExitUsage, "--write: refusing to overwrite ./log.csv: it is an input"},
		{"log.csv --policies limits.yaml --target 50% --write limits.yaml", command.ExitUsage, "--write: refusing to overwrite limits.yaml: it is an input"},
		{"log.csv --target 50% --write old.html --report old.html", command.ExitUsage, "--report: refusing to overwrite old.html: it is also the file of --write"},
		{"log.csv --report log.csv", command.ExitUsage, "--report: log.csv does not end with .html or .htm"},
		{"bad.csv --strict --target 50% --write out.yaml --report out.html", command.ExitFailed, "Reading bad.csv as csv.\noauth-server: stopped at the first unreadable line: bad.csv:5"},
		{"bad.csv --strict --target 50% --write out.yaml --report out.html -o json", command.ExitFailed, "stopped at the first unreadable line: bad.csv:5"},
		{"log.csv --target 50% --write none/out.yaml --report out.html", command.ExitFailed, "--write: open none/out.yaml: no such file"},
	} {
		stdout, stderr, status := run(t, "", append([]string{"simulate"}, strings.Fields(tt.args)...)...)
		check.Equal(t, tt.args, status, tt.status)
		check.Equal(t, tt.args, stdout, "")
		check.Equal(t, stderr, strings.Contains(stderr, tt.want), true)
	}
	left, err := os.ReadDir(".")
	check.OK(t, err)
	check.Equal(t, "files", len(left), 4)
	log, err := os.ReadFile("log.csv")
	check.OK(t, err)
	check.Equal(t, "the log", string(log), burst(3, "shop", "ada"))
}

const (
	keycloakLogin = `{"time":1763280000000,"type":"CLIENT_LOGIN","realmId":"shop","clientId":"shop"}` + "\n"
	keycloakOther = `{"time":1763280000000,"type":"LOGIN","realmId":"shop","clientId":"shop"}` + "\n"
)

// TestSimulateLines: it is said how many entries were left out, also if that was all of them.
func TestSimulateLines(t *testing.T) {
	inTemp(t, map[string]string{
		"some.json": keycloakLogin + keycloakOther + keycloakLogin, "none.json": keycloakOther + keycloakOther, "all.json": keycloakLogin,
		"bad.json": keycloakLogin + "{\n", "other.json": `{"date":"2026-11-16T09:00:00Z","type":"s","log_id":"1"}`,
		"blank.log": "\n\n",
	})
	for args, want := range map[string]string{
		"some.json": "Reading some.json as keycloak.\nOf 3 entries, 2 are token requests, 1 is skipped as something else.\n",
		"all.json":  "Reading all.json as keycloak.\n",
		"bad.json":  "Of 2 entries, 1 is a token request, 1 cannot be read (50 %):\n  bad.json:2: ",
		"none.json": "Of 2 entries, 0 are token requests, 2 are skipped as something else.\n" +
			"oauth-server: no token requests in none.json (read as keycloak); if the format is wrong, give --format",
		"blank.log":                  "Of 2 entries, 0 are token requests, 2 are skipped as something else.\noauth-server: no token requests in blank.log\n",
		"other.json --format auth0":  "Of 1 entry, 0 are token requests, 1 is skipped as something else.\noauth-server: no token requests in other.json (read as auth0);",
		"all.json --format auth0":    "Of 1 entry, 0 are token requests, 1 cannot be read (100 %):\n  all.json:1: line: is not an entry of a tenant log",
		"all.json some.json -o text": "Of 4 entries, 3 are token requests, 1 is skipped as something else.\n",
	} {
		_, stderr, _ := run(t, "", append([]string{"simulate"}, strings.Fields(args)...)...)
		has(t, stderr, want)
		check.Equal(t, args+": said", strings.Contains(stderr, "entries, ") || strings.Contains(stderr, "entry, "), !strings.HasPrefix(args, "all.json") || strings.Contains(args, " -"))
	}
}

// TestSimulateApplied: the answer says under which limits it is, in every form, and keeps them apart from those found. The page
// of --report has what --top cuts.
func TestSimulateApplied(t *testing.T) {
	const builtIn = "the built-in limits, 100/60s"
	inTemp(t, map[string]string{
		"log.csv":    burst(5, "shop", "ada", "") + strings.TrimPrefix(burst(2, "billing", "bob"), "time,client,user,grant\n"),
		"none.yaml":  "{}\n",
		"user.yaml":  "rate_limit: { default: { user: [ { requests: 3, window: 60s } ] } }\nstore: { mongodb: { uri: mongodb://secret } }\n",
		"both.yaml":  "# of both\nsettings: { default: { user: [ { requests: 4, window: 60s } ], client: [ { requests: 4, window: 60s } ] } }\n",
		"other.yaml": "log: { level: info }\n",
	})
	for _, tt := range []struct {
		args, under string
		names       []string
		text        string // of the first
	}{
		{"", "the built-in limits, 100/60s", []string{"built in"}, "requests: 100"},
		{"--policies none.yaml", "the limits of none.yaml and, for other users and clients, " + builtIn, []string{"none.yaml", "built in"}, "{}"},
		{"--policies other.yaml", "the limits of other.yaml and, for other users and clients, " + builtIn, []string{"other.yaml", "built in"}, "rate_limit: {}"},
		{"--policies user.yaml", "the limits of user.yaml and, for other clients, " + builtIn, []string{"user.yaml", "built in"}, "requests: 3"},
		{"--policies both.yaml", "the limits of both.yaml", []string{"both.yaml"}, "# of both"},
		{"--policies user.yaml --policies both.yaml --target 100%", "the limits of both.yaml and user.yaml", []string{"both.yaml", "user.yaml"}, "# of both"},
	} {
		args := append([]string{"simulate", "log.csv", "--report", "out.html", "--top", "1", "--limit", "2/60s"}, strings.Fields(tt.args)...)
		stdout, _, _ := run(t, "", args...)
		has(t, stdout, " under "+tt.under+".\n", "1 client is left out here.")
		var r simulate.Result
		runJSON(t, &r, "", args...)
		check.Equal(t, tt.args, r.Under, tt.under)
		var names []string
		for _, p := range r.Policies {
			names = append(names, p.Name)
			check.Equal(t, "a secret in "+p.Name, strings.Contains(p.Text, "secret"), false)
		}
		check.Equal(t, tt.args, names, tt.names)
		has(t, r.Policies[0].Text, tt.text)
		page, err := os.ReadFile("out.html")
		check.OK(t, err)
		has(t, string(page), "under "+tt.under, ">Limits in this simulation<", tt.text, "shop", "billing", "2/60s", "Requests over time", "Limits compared")
		check.Equal(t, "limits found", strings.Contains(string(page), ">Limits found<"), strings.Contains(tt.args, "--target"))
		check.Equal(t, "limits found", strings.Contains(r.Found, "requests: 5"), strings.Contains(tt.args, "--target"))
	}
}

// TestSimulateAbsentClients: limits of clients that send nothing are named.
func TestSimulateAbsentClients(t *testing.T) {
	inTemp(t, map[string]string{
		"log.csv":   burst(5, "portal", "ada"),
		"one.yaml":  "policies: { portals: { trusted: true }, portal: { trusted: true } }\n",
		"many.yaml": "policies: { a1: {}, a2: {}, a3: {}, a4: {}, a5: {} }\noverrides: { a6 ada: { user: [ { requests: 3, window: 60s } ] } }\n",
	})
	for file, want := range map[string]string{
		"one.yaml":  "The log has no requests of a client with its own limits: portals (did you mean portal?).\n",
		"many.yaml": "The log has no requests of 6 clients with their own limits: a1, a2, a3, a4, a5, … and 1 more.\n",
	} {
		_, stderr, _ := run(t, "", "simulate", "log.csv", "--policies", file)
		has(t, stderr, want)
	}
}

// TestSimulateKeeps: --write keeps what the file of limits has beside the settings.
func TestSimulateKeeps(t *testing.T) {
	inTemp(t, map[string]string{
		"log.csv": burst(5, "shop", "ada") + strings.TrimPrefix(burst(7, "batch", ""), "time,client,user,grant\n"),
		"limits.yaml": "settings: { note: kept }\ntiers: { gold: { client: [ { requests: 60, window: 60s } ] } }\npolicies: { batch: { tier: gold } }\n" +
			"overrides: { shop ada: { user: [ { requests: 9, window: 60s } ] } }\ncandidates: { batch: { client: [ { requests: 5, window: 60s } ] } }\n",
	})
	runOK(t, "", "simulate", "log.csv", "--policies", "limits.yaml", "--target", "100%", "--write", "found.yaml")
	text, err := os.ReadFile("found.yaml")
	check.OK(t, err)
	has(t, string(text), "requests: 5", "note: kept", "tiers:\n  gold:", "policies:\n  batch:\n    tier: gold", "overrides:\n  shop ada:", "candidates:\n  batch:")
	var before, after simulate.Result
	runJSON(t, &before, "", "simulate", "log.csv", "--policies", "limits.yaml")
	runJSON(t, &after, "", "simulate", "log.csv", "--policies", "found.yaml")
	check.Equal(t, "denied", after.Total.Denied, before.Total.Denied)
}

// TestSimulateNothingToFind: where no limit denies anything there is no lowest one, and the file of an earlier run stays.
func TestSimulateNothingToFind(t *testing.T) {
	const before = "settings: {}\n"
	inTemp(t, map[string]string{
		"failed.csv":  "time,client,user,status\n2026-11-16T09:00:00Z,shop,ada,401\n",
		"log.csv":     burst(3, "shop", "ada"),
		"trusts.yaml": "policies: { shop: { trusted: true } }\n",
		"found.yaml":  before,
	})
	for _, args := range []string{"failed.csv", "log.csv --policies trusts.yaml", "log.csv --policies trusts.yaml --of requests"} {
		stdout, stderr, status := run(t, "", append([]string{"simulate", "--target", "99%", "--write", "found.yaml"}, strings.Fields(args)...)...)
		check.Equal(t, args+": status", status, command.ExitFailed)
		has(t, stderr, "no requests to find a limit for")
		has(t, stdout, "shop")
		text, err := os.ReadFile("found.yaml")
		check.OK(t, err)
		check.Equal(t, args+": the file", string(text), before)
	}
}
