package dashboards_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"oauth-server/internal/observe/metrics"
	"oauth-server/lab/dashboards"
)

const (
	rulesDir = "../../deploy/prometheus/rules"
	casesDir = "../../deploy/prometheus/tests"
)

// Dashboards and rules use only metrics that are exported, and every exported
// metric is on a dashboard or in a rule.
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
			if _, ok := exported[name]; !ok {
				t.Errorf("%s uses %s, which is not exported", where, name)
			}
			used[name] = true
		}
	}
	for name := range exported {
		if !used[name] {
			t.Errorf("%s is exported, but on no dashboard and in no rule", name)
		}
	}
}

// Names with a colon are the results of recording rules.
func TestRecordedNamesInUseAreRecorded(t *testing.T) {
	recorded := map[string]bool{}
	for _, r := range rules(t) {
		recorded[r.Record] = true
	}
	for where, expr := range expressions(t) {
		for _, name := range regexp.MustCompile(`\boauth:[a-z0-9_:]+`).FindAllString(expr, -1) {
			if !recorded[name] {
				t.Errorf("%s uses %s, which no rule records", where, name)
			}
		}
	}
}

// Prometheus' own parser reads every expression, each as a rule of one file.
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
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "expressions.yml")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(promtool, "check", "rules", path).CombinedOutput()
	if found := fmt.Sprintf("%d rules found", len(list)); err != nil || !strings.Contains(string(out), found) {
		t.Errorf("promtool check rules: %v, want %q in:\n%s", err, found, out)
	}
}

func TestRulesPassTheirCases(t *testing.T) {
	promtool := command(t, "promtool")
	for name, args := range map[string][]string{
		"check": append([]string{"check", "rules"}, glob(t, rulesDir, "*.yml")...),
		"cases": append([]string{"test", "rules"}, glob(t, casesDir, "*.yml")...),
	} {
		out, err := exec.Command(promtool, args...).CombinedOutput()
		if err != nil {
			t.Errorf("%s: promtool: %v\n%s", name, err, out)
		}
	}
}

func TestEveryAlertHasACaseThatFiresItAndOneThatDoesNot(t *testing.T) {
	fires, silent := alertCases(t)
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		if !fires[r.Alert] {
			t.Errorf("no case fires %s", r.Alert)
		}
		if !silent[r.Alert] {
			t.Errorf("no case keeps %s silent", r.Alert)
		}
		if r.Labels["severity"] == "" {
			t.Errorf("%s has no severity", r.Alert)
		}
		for _, note := range []string{"summary", "description", "dashboard"} {
			if r.Annotations[note] == "" {
				t.Errorf("%s has no %s", r.Alert, note)
			}
		}
	}
}

func TestDocsListEveryAlert(t *testing.T) {
	page := readFile(t, "../../docs/metrics.md")
	var listed, known []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(OAuth[A-Za-z]+)` \\|.* \\| (\\w+) \\|$").FindAllStringSubmatch(page, -1) {
		listed = append(listed, m[1]+" "+m[2])
	}
	for _, r := range rules(t) {
		if r.Alert != "" {
			known = append(known, r.Alert+" "+r.Labels["severity"])
		}
	}
	if diff := cmp.Diff(known, listed); diff != "" {
		t.Errorf("docs/metrics.md lists other alerts than the rules (-rules +page):\n%s", diff)
	}
}

func alertCases(t *testing.T) (fires, silent map[string]bool) {
	t.Helper()
	fires, silent = map[string]bool{}, map[string]bool{}
	for _, path := range glob(t, casesDir, "*.yml") {
		var file struct {
			Tests []struct {
				Cases []struct {
					Name     string `yaml:"alertname"`
					Expected []any  `yaml:"exp_alerts"`
				} `yaml:"alert_rule_test"`
			}
		}
		readYAML(t, path, &file)
		for _, test := range file.Tests {
			for _, c := range test.Cases {
				fires[c.Name] = fires[c.Name] || len(c.Expected) > 0
				silent[c.Name] = silent[c.Name] || len(c.Expected) == 0
			}
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
	for _, path := range glob(t, rulesDir, "*.yml") {
		var file struct{ Groups []struct{ Rules []rule } }
		readYAML(t, path, &file)
		for _, g := range file.Groups {
			all = append(all, g.Rules...)
		}
	}
	return all
}

// expressions returns every expression in use, by its place, with Grafana's
// variables replaced.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for name, d := range dashboards.All() {
		for _, q := range d.Queries() {
			found[name+": "+q.Panel+" "+q.RefID] = q.Expr(dashboards.Everything)
		}
		for _, q := range d.Changes() {
			found[name+": annotation "+q.Panel] = q.Expr(dashboards.Everything)
		}
	}
	for _, r := range rules(t) {
		found["rule "+r.Record+r.Alert] = r.Expr
	}
	return found
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(readFile(t, path)), into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func command(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed (Debian: apt-get install prometheus)", name)
	}
	return path
}
