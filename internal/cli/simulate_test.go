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

// TestSimulateTop: the table is cut, the totals are not.
func TestSimulateTop(t *testing.T) {
	log := "time,client\n"
	for i := range 30 {
		log += fmt.Sprintf("2026-11-16T09:00:00Z,c%02d\n", i)
	}
	inTemp(t, map[string]string{"log.csv": log})
	for args, want := range map[string]int{"": 20, "--top 3": 3, "--top 99": 30} {
		text, _, _ := run(t, "", append([]string{"simulate", "log.csv"}, strings.Fields(args)...)...)
		check.Equal(t, "clients with "+args, len(regexp.MustCompile(`(?m)^c\d\d `).FindAllString(text, -1)), want)
		has(t, text, "Of 30 requests of 30 clients")
	}
	var r simulate.Result
	runJSON(t, &r, "", "simulate", "log.csv")
	check.Equal(t, "clients as JSON", len(r.Clients), 30)
}

// TestSimulateFinds: the file that is written is what limits apply and limits candidate set take, and under it the share is
// untouched.
func TestSimulateFinds(t *testing.T) {
	s := newLimitsServer(t)
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

	_, stderr = s.limits(command.ExitUsage, "candidate set --limit 5/60s -f "+found)
	has(t, stderr, "--file cannot be used")
	check.OK(t, os.WriteFile(again, []byte("tiers: {}\n"), 0o600))
	_, stderr = s.limits(command.ExitUsage, "candidate set -f "+again)
	has(t, stderr, "has no limits")
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
