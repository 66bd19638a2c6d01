package dashboards_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oauth-server/tools/dashboards"
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
