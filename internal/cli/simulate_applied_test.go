package cli

import (
	"os"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/simulate"
)

// TestSimulateApplied: the answer says under which limits it is, in every form, and keeps them apart from those found.
func TestSimulateApplied(t *testing.T) {
	const builtIn = "the built-in limits, 100/60s"
	inTemp(t, map[string]string{
		"log.csv":    burst(5, "shop", "ada", ""),
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
		{"--policies user.yaml --policies both.yaml --target 50%", "the limits of both.yaml and user.yaml", []string{"both.yaml", "user.yaml"}, "# of both"},
	} {
		args := append([]string{"simulate", "log.csv", "--report", "out.html"}, strings.Fields(tt.args)...)
		stdout, _, _ := run(t, "", args...)
		has(t, stdout, " under "+tt.under+".\n")
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
		has(t, string(page), "under "+tt.under, ">Limits in this simulation<", tt.text)
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
