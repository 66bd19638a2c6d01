package main

import (
	"os"
	"strings"
	"testing"
)

// TestPage: the table of the page is what this command makes of the committed output.
func TestPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../results/bench.txt")
	if err != nil {
		t.Fatal(err)
	}
	table, err := parse(string(text)).table(rows())
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../pages/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), strings.TrimSpace(table)) {
		t.Error("lab/pages/performance.md does not have the table of lab/results/bench.txt; make bench writes both")
	}
}
