package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oauth-server/tools/page"
)

// TestPageHasAllSections: the page has a place for each section, so that it can be written.
func TestPageHasAllSections(t *testing.T) {
	text, err := os.ReadFile("../../../" + pageFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range append(sections, section{name: "published"}) {
		if _, err := page.With(string(text), s.name, "text"); err != nil {
			t.Error(err)
		}
	}
}

func TestCells(t *testing.T) {
	out := parse(`poisson at 1.00x, clients: 1 (ignore)

RATE   ALGORITHM  WRONG
0.50x  sliding    0.01 %
1.00x  sliding-2  12.50 %

Requests and tokens of all clients; at most in 1s:

ALGORITHM  REQUESTS/S  AT MOST  TOKENS/S  AT MOST
sliding    1.67        11       1.57      8
`)
	for _, tc := range []struct {
		table  int
		column string
		nth    int
		row    []string
		want   string
		number float64
	}{
		{decisions, "WRONG", 1, []string{"1.00x", "sliding-2"}, "12.50 %", 12.5},
		{decisions, "RATE", 1, []string{"0.50x"}, "0.50x", 0.5},
		{flows, "AT MOST", 2, []string{"sliding"}, "8", 8},
	} {
		got, err := out.cell(tc.table, tc.column, tc.nth, tc.row...)
		if err != nil {
			t.Fatal(err)
		}
		number, err := figure(got)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || number != tc.number {
			t.Errorf("%s: %v %s", tc.column, number, diff)
		}
	}
	for _, wrong := range []struct {
		table  int
		column string
		row    string
	}{{estimates, "WRONG", "sliding"}, {flows, "WRONG", "sliding"}, {flows, "AT MOST", "fixed"}} {
		if got, err := out.cell(wrong.table, wrong.column, 1, wrong.row); err == nil {
			t.Errorf("%v: %s", wrong, got)
		}
	}
}
