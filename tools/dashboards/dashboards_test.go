package dashboards_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"oauth-server/internal/metrics"
	"oauth-server/tools/dashboards"
)

var update = flag.Bool("update", false, "write the files in dashboards/")

const (
	filesDir = "../../dashboards"
	rulesDir = "../../deploy/prometheus/rules"
	casesDir = "../../deploy/prometheus/tests"
)

func TestFilesHoldTheDashboards(t *testing.T) {
	all := dashboards.All()
	for name, d := range all {
		want, err := d.JSON()
		require.NoError(t, err)
		if *update {
			require.NoError(t, os.WriteFile(filepath.Join(filesDir, name), want, 0o644))
		}
		got, err := os.ReadFile(filepath.Join(filesDir, name))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "%s is out of date: make dashboards", name)
	}
	files, err := filepath.Glob(filepath.Join(filesDir, "*.json"))
	require.NoError(t, err)
	require.Len(t, files, len(all))
}

func TestPanelsDoNotOverlap(t *testing.T) {
	for name, d := range dashboards.All() {
		taken, ids := map[[2]int]string{}, map[int]bool{}
		for _, p := range d.Panels {
			require.False(t, ids[p.ID], "%s: two panels have the id %d", name, p.ID)
			ids[p.ID] = true
			for x := range p.GridPos.W {
				for y := range p.GridPos.H {
					at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
					require.Less(t, at[0], 24, "%s: %q stands out", name, p.Title)
					require.Empty(t, taken[at], "%s: %q lies on %q", name, p.Title, taken[at])
					taken[at] = p.Title
				}
			}
		}
	}
}

func TestEveryPanelSaysWhatItShows(t *testing.T) {
	for name, d := range dashboards.All() {
		for _, p := range d.Panels {
			if p.Type == "row" {
				continue
			}
			require.NotEmpty(t, p.Description, "%s: %s", name, p.Title)
			require.NotEmpty(t, p.Targets, "%s: %s", name, p.Title)
			require.NotEmpty(t, unitOf(p), "%s: %s has no unit", name, p.Title)
		}
	}
}

func unitOf(p dashboards.Panel) string {
	if p.Type == "table" {
		return "by column"
	}
	return p.FieldConfig.Defaults.Unit
}

// Dashboards, rules and the code must speak of the same metrics: none that is
// not exported, and none exported that nobody looks at.
func TestMetricsInUseAreThoseExported(t *testing.T) {
	exported := map[string]metrics.Kind{}
	for _, i := range metrics.Catalog() {
		exported[i.Name] = i.Kind
	}
	used := map[string]bool{}
	for where, expr := range expressions(t) {
		for _, name := range regexp.MustCompile(`\boauth_[a-z_]+\b`).FindAllString(expr, -1) {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				if base, ok := strings.CutSuffix(name, suffix); ok && exported[base] == metrics.Histogram {
					name = base
				}
			}
			require.Contains(t, exported, name, where)
			used[name] = true
		}
	}
	for name := range exported {
		require.True(t, used[name], "%s is exported, but on no dashboard and in no rule", name)
	}
}

// Recorded names must be recorded somewhere.
func TestRecordedNamesInUseAreRecorded(t *testing.T) {
	recorded := map[string]bool{}
	for _, r := range rules(t) {
		recorded[r.Record] = true
	}
	for where, expr := range expressions(t) {
		for _, name := range regexp.MustCompile(`\boauth:[a-z0-9_:]+`).FindAllString(expr, -1) {
			require.True(t, recorded[name], "%s uses %s, which no rule records", where, name)
		}
	}
}

// Prometheus' own parser reads each expression, as the rule of a file.
func TestExpressionsParse(t *testing.T) {
	promtool := command(t, "promtool")
	var file struct {
		Groups []map[string]any `yaml:"groups"`
	}
	var list []map[string]string
	for _, expr := range expressions(t) {
		list = append(list, map[string]string{"record": fmt.Sprintf("expression:%d", len(list)), "expr": expr})
	}
	file.Groups = []map[string]any{{"name": "expressions", "rules": list}}
	raw, err := yaml.Marshal(file)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "expressions.yml")
	require.NoError(t, os.WriteFile(path, raw, 0o600))
	out, err := exec.Command(promtool, "check", "rules", path).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), fmt.Sprintf("%d rules found", len(list)))
}

func TestRulesPassTheirCases(t *testing.T) {
	promtool := command(t, "promtool")
	for name, args := range map[string][]string{
		"check": append([]string{"check", "rules"}, glob(t, rulesDir)...),
		"cases": append([]string{"test", "rules"}, glob(t, casesDir)...),
		// The paths in it are those inside the container.
		"configuration": {"check", "config", "--syntax-only", "../../deploy/prometheus/prometheus.yml"},
	} {
		out, err := exec.Command(promtool, args...).CombinedOutput()
		require.NoError(t, err, "%s: %s", name, out)
	}
}

func TestEveryAlertHasACaseThatFiresItAndOneThatDoesNot(t *testing.T) {
	fires, silent := alertCases(t)
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		require.True(t, fires[r.Alert], "no case fires %s", r.Alert)
		require.True(t, silent[r.Alert], "no case keeps %s silent", r.Alert)
		require.NotEmpty(t, r.Labels["severity"], r.Alert)
		for _, note := range []string{"summary", "description", "dashboard"} {
			require.NotEmpty(t, r.Annotations[note], "%s has no %s", r.Alert, note)
		}
	}
}

func TestDocsListEveryAlert(t *testing.T) {
	page, err := os.ReadFile("../../docs/deployment.md")
	require.NoError(t, err)
	var listed, known []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(OAuth[A-Za-z]+)` \\|.* \\| (\\w+) \\|$").FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, m[1]+" "+m[2])
	}
	for _, r := range rules(t) {
		if r.Alert != "" {
			known = append(known, r.Alert+" "+r.Labels["severity"])
		}
	}
	require.Equal(t, known, listed)
}

func alertCases(t *testing.T) (fires, silent map[string]bool) {
	t.Helper()
	var file struct {
		Tests []struct {
			Cases []struct {
				Name     string `yaml:"alertname"`
				Expected []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		} `yaml:"tests"`
	}
	read(t, filepath.Join(casesDir, "alerts.yml"), &file)
	fires, silent = map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		for _, c := range test.Cases {
			fires[c.Name] = fires[c.Name] || len(c.Expected) > 0
			silent[c.Name] = silent[c.Name] || len(c.Expected) == 0
		}
	}
	return fires, silent
}

type rule struct {
	Record, Alert, Expr string
	Labels, Annotations map[string]string
}

func rules(t *testing.T) []rule {
	t.Helper()
	var all []rule
	for _, path := range glob(t, rulesDir) {
		var file struct{ Groups []struct{ Rules []rule } }
		read(t, path, &file)
		for _, g := range file.Groups {
			all = append(all, g.Rules...)
		}
	}
	return all
}

// expressions returns every expression in use by where it stands, with
// Grafana's variables filled in.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for name, d := range dashboards.All() {
		for _, q := range d.Queries() {
			found[name+": "+q.Panel+" "+q.RefID] = q.Expr(dashboards.Everything)
		}
	}
	for _, r := range rules(t) {
		found["rule "+r.Record+r.Alert] = r.Expr
	}
	return found
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(raw, into), path)
}

func glob(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.yml"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	slices.Sort(paths)
	return paths
}

func command(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed (Debian: apt-get install prometheus)", name)
	}
	return path
}
