package dashboards_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oauth-server/lab/dashboards"
)

var update = flag.Bool("update", false, "write the files in dashboards/")

const filesDir = "../../dashboards"

func TestFilesHoldTheDashboards(t *testing.T) {
	all := dashboards.All()
	for name, d := range all {
		want, err := d.JSON()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(filesDir, name)
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(string(want), readFile(t, path)); diff != "" {
			t.Errorf("%s is out of date, run make dashboards (-want +got):\n%s", name, diff)
		}
	}
	if files := glob(t, filesDir, "*.json"); len(files) != len(all) {
		t.Errorf("there are %d files for %d dashboards: %q", len(files), len(all), files)
	}
}

func TestPanelsDoNotOverlap(t *testing.T) {
	for name, d := range dashboards.All() {
		taken, ids := map[[2]int]string{}, map[int]bool{}
		for _, p := range d.Panels {
			if ids[p.ID] {
				t.Errorf("%s: two panels have the id %d", name, p.ID)
			}
			ids[p.ID] = true
			for x := range p.GridPos.W {
				for y := range p.GridPos.H {
					at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
					if at[0] >= 24 {
						t.Fatalf("%s: %q is wider than the dashboard", name, p.Title)
					}
					if other, ok := taken[at]; ok {
						t.Fatalf("%s: %q overlaps %q", name, p.Title, other)
					}
					taken[at] = p.Title
				}
			}
		}
	}
}

func TestEveryPanelHasADescriptionAUnitAndQueries(t *testing.T) {
	for name, d := range dashboards.All() {
		for _, p := range d.Panels {
			if p.Type == "row" {
				continue
			}
			if p.Description == "" || len(p.Targets) == 0 || unitOf(p) == "" {
				t.Errorf("%s: %s has the description %q, %d queries and the unit %q; want all three",
					name, p.Title, p.Description, len(p.Targets), unitOf(p))
			}
		}
	}
}

// Each metric of a query is selected by the job, the namespace and the instance that are chosen at the
// top, also in annotations.
func TestEverySelectionFollowsTheVariables(t *testing.T) {
	chosen := dashboards.Everything
	chosen.Job, chosen.Namespace, chosen.Instance = "J", "N", "I"
	selector := regexp.MustCompile(`\b(?:oauth|process|go)_[a-z_]+(\{[^}]*\})?`)
	for name, d := range dashboards.All() {
		for _, q := range append(d.Queries(), d.Changes()...) {
			for _, m := range selector.FindAllStringSubmatch(q.Expr(chosen), -1) {
				if !strings.Contains(m[1], `job=~"J",namespace=~"N",instance=~"I"`) {
					t.Errorf("%s: %s selects %s", name, q.Panel, m[0])
				}
			}
		}
		if len(d.Changes()) == 0 {
			t.Errorf("%s does not mark changes of limits", name)
		}
	}
}

// A comparison with 0 would cut a line where it is 0.
func TestZeroIsALineAndNoGap(t *testing.T) {
	for name, d := range dashboards.All() {
		for _, q := range d.Queries() {
			if strings.HasSuffix(strings.ReplaceAll(q.Expr(dashboards.Everything), " ", ""), "])>0") ||
				strings.HasSuffix(q.Expr(dashboards.Everything), ") > 0") {
				t.Errorf("%s: %s has no values where they are 0", name, q.Panel)
			}
		}
	}
}

// An override that matches no series changes nothing.
func TestOverridesMatchTheirSeries(t *testing.T) {
	values := strings.NewReplacer("{{client_id}}", "shop", "{{limit}}", "per-minute", "{{mode}}", "dry_run")
	for name, d := range dashboards.All() {
		for _, p := range d.Panels {
			if p.FieldConfig == nil {
				continue
			}
			for _, o := range p.FieldConfig.Overrides {
				if o.Matcher.ID != "byRegexp" {
					continue
				}
				pattern := regexp.MustCompile(strings.Trim(o.Matcher.Options, "/"))
				if !slices.ContainsFunc(p.Targets, func(q dashboards.Target) bool {
					return pattern.MatchString(values.Replace(q.LegendFormat))
				}) {
					t.Errorf("%s: %s matches no series of %s", name, o.Matcher.Options, p.Title)
				}
			}
		}
	}
}

func unitOf(p dashboards.Panel) string {
	if p.Type == "table" {
		return "by column"
	}
	return p.FieldConfig.Defaults.Unit
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// glob returns the files in dir that match, sorted; there must be one.
func glob(t *testing.T, dir, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no %s in %s: %v", pattern, dir, err)
	}
	return paths
}
