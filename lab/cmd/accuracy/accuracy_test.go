package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oauth-server/lab/page"
)

// TestPageHasAllSections: the page has a place for each section, so that it can be written.
func TestPageHasAllSections(t *testing.T) {
	text, err := os.ReadFile("../../../" + pageFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range append(sections, section{name: "published"}, section{name: "aims"}) {
		if _, err := page.With(string(text), s.name, "text"); err != nil {
			t.Error(err)
		}
	}
}

// TestPageIsUpToDate: the page has what the code gives. The smallest of its sections stands for all.
func TestPageIsUpToDate(t *testing.T) {
	text, err := os.ReadFile("../../../" + pageFile)
	if err != nil {
		t.Fatal(err)
	}
	s := sections[slices.IndexFunc(sections, func(s section) bool { return s.name == "edge" })]
	want, err := s.text(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "```\n"+want+"```") {
		t.Errorf("the page does not have this; make accuracy writes it:\n%s", want)
	}
}

func TestCells(t *testing.T) {
	out := parse(`poisson at 1.00x, clients: 1 (ignore)

RATE   ALGORITHM  WRONG
0.50x  sliding    0.01 %
1.00x  sliding-2  12.50 %

Requests and tokens of all clients; at most in 1s:

SEED  ALGORITHM  REQUESTS/S  AT MOST  TOKENS/S  SHARE
1     sliding    1.67        11       1.57      0.002 %
2     sliding    1.67        11       1.59      0.004 %
`)
	for _, tc := range []struct {
		column string
		row    []string
		want   string
		number float64
	}{
		{"WRONG", []string{"1.00x", "sliding-2"}, "12.50 %", 12.5},
		{"RATE", []string{"0.50x"}, "0.50x", 0.5},
		{"TOKENS/S", []string{"2", "sliding"}, "1.59", 1.59},
		{"SHARE", []string{"sliding"}, "0.003 %", 0.003},
	} {
		got, err := out.cell(tc.column, tc.row...)
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
	for column, row := range map[string]string{"WRONG": "fixed", "NONE": "sliding", "TOKENS/S": "fixed"} {
		if got, err := out.cell(column, row); err == nil {
			t.Errorf("%s of %s: %s", column, row, got)
		}
	}
}
