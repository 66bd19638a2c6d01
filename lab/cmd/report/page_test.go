package main

import (
	"os"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/lab/page"
)

func committed(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../results/bench.txt")
	check.OK(t, err)
	return string(text)
}

// TestPage: the table of the page is what this command makes of the committed output.
func TestPage(t *testing.T) {
	t.Parallel()
	table, err := parse(committed(t)).table(rows())
	check.OK(t, err)
	shown, err := page.Read("../../pages/performance.md", "results")
	check.OK(t, err)
	if strings.TrimSpace(shown) != strings.TrimSpace(table) {
		t.Error("lab/pages/performance.md does not have the table of lab/results/bench.txt; make bench writes both")
	}
}

// TestMissing: the table is not made without a benchmark that has not run: without a peer, ours would look better.
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
