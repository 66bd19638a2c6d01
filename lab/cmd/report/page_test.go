package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/lab/page"
)

const root = "../../.."

func committed(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "lab/results/bench.txt"))
	check.OK(t, err)
	return string(text)
}

// TestPage: the tables of the page and of comparison.txt are what this command makes of the other committed results, and
// there are no other tables.
func TestPage(t *testing.T) {
	t.Parallel()
	all, err := outputs(root)
	check.OK(t, err)
	made := map[string]int{}
	for _, o := range all {
		made[o.file]++
		shown, err := page.Read(filepath.Join(root, o.file), o.section)
		check.OK(t, err)
		if strings.TrimSpace(shown) != strings.TrimSpace(o.text) {
			t.Errorf("%s does not have the table %s of lab/results; each make target that measures writes both", o.file, o.section)
		}
	}
	for file, sections := range made {
		text, err := os.ReadFile(filepath.Join(root, file))
		check.OK(t, err)
		check.Equal(t, "sections of "+file, strings.Count(string(text), "<!-- begin "), sections)
	}
}

// TestLength: the page stays short.
func TestLength(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, pageFile))
	check.OK(t, err)
	if n := len(strings.Fields(string(text))); n > 2000 {
		t.Errorf("%s has %d words, want at most 2,000", pageFile, n)
	}
}

// TestMissing: the tables are not made without a benchmark that has not run: without a peer, ours would look better.
func TestMissing(t *testing.T) {
	t.Parallel()
	for _, of := range []string{"limiter=ulule", "server=fosite", "server=ours"} {
		var lines []string
		for line := range strings.Lines(committed(t)) {
			if !strings.Contains(line, of) {
				lines = append(lines, line)
			}
		}
		_, err := parse(strings.Join(lines, "")).table(rows())
		check.ErrorSays(t, err, of)
	}
}

// TestMissingText: nothing is made if a cell of a text is missing.
func TestMissingText(t *testing.T) {
	t.Parallel()
	found := texts{dir: filepath.Join(root, "lab/results")}
	found.cell(scale, "clients", file, "start", "1,000")
	check.Equal(t, "missing", len(found.missing), 0)
	found.cell(scale, "clients", file, "start", "1,001")
	found.cell("none.txt", "clients", file, "start", "1,000")
	check.Equal(t, "missing", len(found.missing), 2)
}

// TestBest: the best of those that compete is in bold, and not a reference.
func TestBest(t *testing.T) {
	t.Parallel()
	all := []figure{{ours, 3, false}, {"a", 2, false}, {"b", 1, true}}
	for more, want := range map[bool][]string{true: {"**3**", "2", "1", "–"}, false: {"3", "**2**", "1", "–"}} {
		best, found := best(all, more)
		check.Equal(t, "found", found, true)
		for i, label := range []string{ours, "a", "b", "c"} {
			check.Equal(t, label, cell(all, label, best, true), want[i])
		}
	}
}
