package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"oauth-server/lab/page"
)

// TestShort runs all of it, shortly, on any processor, and without comparing times.
func TestShort(t *testing.T) {
	const short = 300 * time.Millisecond
	r, err := measure(t.Context(), settings{
		controls: []string{"enforce"}, costs: short, capacity: short, warm: short / 5, lasts: short, after: short,
		loads: []float64{0.5, 2}, tokens: []float64{0.5}, families: 500, attempts: 1, quiet: time.Second / 2,
		anyCore: true, maxTokens: 1000,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.costs) != 7 || r.capacity <= 0 || r.tokenCapacity <= 0 {
		t.Errorf("costs %v, capacities %v and %v", r.costs, r.capacity, r.tokenCapacity)
	}
	for _, series := range []string{mixSeries, tokenSeries} {
		i := slices.IndexFunc(r.rows, func(r row) bool { return r.series == series })
		if i < 0 {
			t.Errorf("there is no row of series %s", series)
			continue
		}
		if r := r.rows[i]; r.all.due()+r.all.late == 0 || r.goodput < 0 || r.memoryPeak == 0 {
			t.Errorf("%+v", r)
		}
	}
	if len(r.recoveries) == 0 {
		t.Error("there is no recovery")
	}
	sections := r.sections()
	for i, want := range []string{"\nrefresh_token  ", "\nenforce  0.5  ", "\nenforce  0.5  ", "Recovery after 2 × capacity, control enforce: "} {
		if s := sections[i]; !strings.Contains(s.text, want) {
			t.Errorf("%s lacks %q:\n%s", s.name, want, s.text)
		}
	}
}

// TestResultsHaveAllSections: the file has a place for each section, so that it can be written.
func TestResultsHaveAllSections(t *testing.T) {
	for _, s := range new(report).sections() {
		if _, err := page.Read("../../"+resultsFile, s.name); err != nil {
			t.Error(err)
		}
	}
}
