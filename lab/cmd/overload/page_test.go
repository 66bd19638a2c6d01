package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"oauth-server/lab/overload"
)

// TestPage: the tables of the page are what this command makes of the committed results.
func TestPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../results/overload.json")
	if err != nil {
		t.Fatal(err)
	}
	var report overload.Report
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/overload.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), strings.TrimSpace(report.Text())) {
		t.Error("docs/overload.md does not have the tables of benchmarks/results/overload.json; make bench-overload writes both")
	}
}
