package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../../.."

// TestPagesHaveTheSections: each page has the titles of the studies of its sections, in order, and its chart.
func TestPagesHaveTheSections(t *testing.T) {
	for _, s := range sections {
		text, err := os.ReadFile(filepath.Join(root, s.file))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "<!-- begin "+s.name+" -->")
		made, rest, _ := strings.Cut(rest, "<!-- end "+s.name+" -->")
		for _, one := range s.studies {
			_, after, found := strings.Cut(made, "```\n"+one.title+"\n\nINSTANCES")
			if !found {
				t.Errorf("%s, %s: there is no table %q; make clusters writes it", s.file, s.name, one.title)
			}
			made = after
		}
		if s.chart != "" && !strings.Contains(rest, "("+strings.TrimPrefix(s.chart, "docs/")+")") {
			t.Errorf("%s does not show %s after %s", s.file, s.chart, s.name)
		}
	}
}

// TestPageIsUpToDate: the page has what the code gives. The first study of the faults stands for all.
func TestPageIsUpToDate(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, clustersPage))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sections {
		if s.name != "faults" {
			continue
		}
		s.studies = s.studies[:1]
		want, _, err := s.text(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s does not have this; make clusters writes it:\n%s", clustersPage, want)
		}
		return
	}
	t.Fatal("there is no section of faults")
}

// TestUnknownSection: it is said before anything is simulated.
func TestUnknownSection(t *testing.T) {
	if err := run(t.Context(), t.TempDir(), "plain,none"); err == nil || !strings.Contains(err.Error(), "none: the sections are plain, faults") {
		t.Errorf("the error is %v", err)
	}
}
