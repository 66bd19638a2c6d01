//go:build !race

package clusters

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/lab/page"
)

var update = flag.Bool("update", false, "run all studies, and write their tables and charts")

const (
	root    = "../.."
	results = root + "/lab/results/clusters.txt"
)

// tables returns the text of a section, and the clusters of the first study.
func (s *section) tables(t *testing.T) (text string, first []cell) {
	t.Helper()
	for i := range s.studies {
		all := s.studies[i].run(t)
		if i == 0 {
			first = all
		}
		text += fmt.Sprintf("%s\n\n%s\n", s.studies[i].title, tables(all))
	}
	return text, first
}

// TestStudies runs the studies and writes the results, with -update. Otherwise it runs the studies of the faults, which take
// seconds, and compares them with the committed results.
func TestStudies(t *testing.T) {
	for _, s := range sections {
		if !*update && s.name != "faults" {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			if *update {
				text, first := s.tables(t)
				check.OK(t, page.Write(results, s.name, text))
				if s.chart != "" {
					check.OK(t, writeCharts(filepath.Join(root, s.chart), first))
				}
				return
			}
			shown, err := page.Read(results, s.name)
			check.OK(t, err)
			for i := range s.studies {
				_, after, found := strings.Cut(shown, s.studies[i].title+"\n\n")
				check.Equal(t, "the results have the study", found, true)
				near(t, tables(s.studies[i].run(t)), after, cmp.Or(s.studies[i].rare, 30))
			}
		})
	}
}

var apart = regexp.MustCompile(` {2,}`)

// near compares the rows of tables with the committed ones, as far as two runs agree: figures differ by at most 0.02 or a
// fifth. Numbers of rare events differ more, by up to rare.
func near(t *testing.T, text, shown string, rare float64) {
	t.Helper()
	shownLines := strings.Split(shown, "\n")
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		got, want := apart.Split(line, -1), apart.Split(shownLines[i], -1)
		check.Equal(t, "cells in "+line, len(got), len(want))
		for j := range got {
			a, errA := strconv.ParseFloat(got[j], 64)
			b, errB := strconv.ParseFloat(want[j], 64)
			if errA != nil || errB != nil {
				check.Equal(t, "cell", got[j], want[j])
				continue
			}
			most := max(0.02, math.Abs(b)/5)
			if !strings.Contains(want[j], ".") {
				most = max(most, rare)
			}
			if math.Abs(a-b) > most {
				t.Errorf("%s instead of %s; if this is right, make clusters writes it:\n%s\n%s", got[j], want[j], line, shownLines[i])
			}
		}
	}
}

// TestSections: the results have the titles of all studies, in order, and the page shows the charts.
func TestSections(t *testing.T) {
	shown, err := os.ReadFile(filepath.Join(root, "docs/measurements.md"))
	check.OK(t, err)
	for _, s := range sections {
		made, err := page.Read(results, s.name)
		check.OK(t, err)
		for _, one := range s.studies {
			_, after, found := strings.Cut(made, "\n"+one.title+"\n\nINSTANCES")
			if !found {
				t.Errorf("%s: there is no table %q; make clusters writes it", s.name, one.title)
			}
			made = after
		}
		if s.chart != "" && !strings.Contains(string(shown), "]("+strings.TrimPrefix(s.chart, "docs/")+")") {
			t.Errorf("the page does not show %s", s.chart)
		}
	}
}
