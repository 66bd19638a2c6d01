package dashboards_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v3"

	"oauth-server/lab/dashboards"
)

// input is a series, one value every 15 s, as promtool writes it.
type input struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

type sample struct {
	Labels string  `yaml:"labels"`
	Value  float64 `yaml:"value"`
}

// expression is what an expression has as its result at a time.
type expression struct {
	Expr    string   `yaml:"expr"`
	At      string   `yaml:"eval_time"`
	Samples []sample `yaml:"exp_samples"`
}

func checkValues(t *testing.T, series []input, expressions ...expression) {
	t.Helper()
	promtool := command(t, "promtool")
	raw, err := yaml.Marshal(map[string]any{"tests": []any{map[string]any{
		"interval": "15s", "input_series": series, "promql_expr_test": expressions,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "test.yml")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(promtool, "test", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// queries returns the expressions of a panel of the rate limits by their legend, with rates over a
// minute.
func queries(t *testing.T, panel string) map[string]string {
	t.Helper()
	v := dashboards.Everything
	v.Over = dashboards.RateOver()[0].Value
	found := map[string]string{}
	for _, q := range dashboards.All()["ratelimits.json"].Queries() {
		if q.Panel == panel {
			found[q.Legend] = q.Expr(v)
		}
	}
	if len(found) == 0 {
		t.Fatalf("there is no panel %q", panel)
	}
	return found
}

// A client that uses up its limit of 60 a minute at once is drawn at one a second, and not above it.
func TestAClientAtItsLimitIsDrawnAtItsLimit(t *testing.T) {
	checkValues(t, []input{
		{`oauth_ratelimit_decisions_total{job="j",instance="a",client_id="shop",grant_type="password",outcome="allowed"}`, "1000x4 1060x3 1120x3 1180x3"},
	}, expression{queries(t, "Ratelimit Allowed Rate")["{{client_id}}"], "2m7s", []sample{{`{client_id="shop"}`, 1}}})
}

func TestClientsThatAreNeverDeniedAreMarked(t *testing.T) {
	var series []input
	for client, mode := range map[string]string{"app": "enforce", "newcomer": "dry_run", "shop": "enforce"} {
		labels := `{job="j",instance="a",client_id="` + client + `"`
		series = append(series,
			input{`oauth_ratelimit_decisions_total` + labels + `,grant_type="password",outcome="allowed"}`, "0+15x8"},
			input{`oauth_ratelimit_mode` + labels + `,mode="` + mode + `"}`, "1x8"})
	}
	series = append(series,
		input{`oauth_ratelimit_trusted{job="j",instance="a",client_id="app"}`, "1x7 stale"}, // a scrape failed
		input{`oauth_ratelimit_trusted{job="j",instance="a",client_id="shop"}`, "0x8"})
	q := queries(t, "Ratelimit Allowed Rate")
	checkValues(t, series,
		expression{q["{{client_id}}"], "2m", []sample{{`{client_id="shop"}`, 1}}},
		expression{q["{{client_id}} (trusted)"], "2m", []sample{{`{client_id="app"}`, 1}}},
		expression{q["{{client_id}} ({{mode}})"], "2m", []sample{{`{client_id="newcomer",mode="dry_run"}`, 1}}})
}

// The limits of a client are drawn once each, and only where they are not the default.
func TestEachLimitIsOneLine(t *testing.T) {
	limit := func(metric, labels, value string) input {
		return input{metric + `{job="j",instance="a",` + labels + `}`, value}
	}
	series := []input{}
	for labels, value := range map[string]string{
		`client_id="shop",kind="user",limit="per-minute"`: "60x8", `client_id="shop",kind="client",limit="per-minute"`: "60x8", // the default
		`client_id="app",kind="user",limit="per-minute"`: "120x8", `client_id="app",kind="client",limit="per-minute"`: "120x8",
		`client_id="job",kind="user",limit="per-minute"`: "180x8", `client_id="job",kind="client",limit="per-minute"`: "60x8",
	} {
		series = append(series, limit("oauth_ratelimit_limit", labels, value), limit("oauth_ratelimit_limit_window_seconds", labels, "60x8"))
	}
	for _, kind := range []string{"user", "client"} {
		labels := `kind="` + kind + `",limit="per-minute"`
		series = append(series, limit("oauth_ratelimit_default_limit", labels, "60x8"), limit("oauth_ratelimit_default_limit_window_seconds", labels, "60x8"))
	}
	q := queries(t, "Ratelimit Allowed Rate")
	checkValues(t, series,
		expression{q["default limit ({{limit}})"], "1m", []sample{{`{limit="per-minute"}`, 1}}},
		expression{q["default limit of each user ({{limit}})"], "1m", nil},
		expression{q["limit of {{client_id}} ({{limit}})"], "1m", []sample{{`{client_id="app",limit="per-minute"}`, 2}}},
		expression{q["limit of each user of {{client_id}} ({{limit}})"], "1m", []sample{{`{client_id="job",limit="per-minute"}`, 3}}})
}

// A denied client is at zero before and after, and one that was never denied is not drawn.
func TestADeniedClientHasALineAtZero(t *testing.T) {
	denied := `oauth_ratelimit_decisions_total{job="j",instance="a",grant_type="password",outcome="denied",client_id=`
	q := queries(t, "Ratelimit Denied Rate")["{{client_id}}"]
	series := []input{{denied + `"shop"}`, "0x8 15 30x16"}, {denied + `"app"}`, "0x26"}}
	checkValues(t, series, expression{q, "5m", []sample{{`{client_id="shop"}`, 0}}})
}

func TestChangesOfLimitsAreMarked(t *testing.T) {
	d := dashboards.All()["sync.json"]
	limits, policies := d.Changes()[0].Expr(dashboards.Everything), d.Changes()[1].Expr(dashboards.Everything)
	checkValues(t, []input{
		{`oauth_ratelimit_limit{job="j",instance="a",client_id="shop",kind="user",limit="per-minute"}`, "60x8 120x12"},
		{`oauth_ratelimit_limit{job="j",instance="a",client_id="app",kind="user",limit="per-minute"}`, "60x20"},
		{`oauth_config_revision{job="j",instance="a",config="policies"}`, "7x8 8x12"},
		{`oauth_config_revision{job="j",instance="a",config="clients"}`, "1+1x20"},
	},
		expression{limits, "2m", nil},
		expression{limits, "2m30s", []sample{{`{client_id="shop",kind="user",limit="per-minute"}`, 1}}},
		expression{policies, "2m30s", []sample{{`{config="policies"}`, 1}}},
		expression{limits, "4m", nil}, expression{policies, "4m", nil})
}
