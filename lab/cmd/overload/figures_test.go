package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"oauth-server/lab/load"
)

const ms = time.Millisecond

func record(c class, status int, due, took time.Duration) load.Record {
	return load.Record{Class: int(c), Status: status, Due: due, Sent: due, Done: due + took}
}

// TestFigure: what is due before and after the time, is of another class, or is in doubt, is not counted.
func TestFigure(t *testing.T) {
	t.Parallel()
	result := &load.Result{
		Records: []load.Record{
			record(refresh, 200, 99*ms, ms), // before
			record(refresh, 200, 100*ms, 4*ms),
			record(refresh, 200, 150*ms, 2*ms),
			record(refresh, 503, 160*ms, 9*ms),
			record(refresh, 429, 170*ms, 9*ms),
			record(refresh, 400, 171*ms, 9*ms),
			record(refresh, load.Closed, 172*ms, 9*ms),
			record(refresh, load.HungUp, 180*ms, time.Second),
			record(clientOnly, 200, 150*ms, 500*ms),  // of another class
			record(refresh, 200, 403*ms, 100*ms),     // due in the gap
			record(refresh, 200, 380*ms, 31*ms),      // answered in it: read 1 ms after its end
			record(refresh, 200, 380*ms, 33*ms),      // read later: not in doubt
			record(refresh, 200, 600*ms+ms/2, 1*ms),  // due in a short gap, which does not matter
			record(refresh, 200, 900*ms, 1*ms),       // after
			record(refresh, load.HungUp, 401*ms, ms), // due in the gap
		},
		Gaps: []load.Gap{{From: 400 * ms, To: 410 * ms}, {From: 600 * ms, To: 602 * ms}},
	}
	got := figure(result, 100*ms, 900*ms, refresh)
	statuses := map[int]int{200: 4, 503: 1, 429: 1, 400: 1, load.Closed: 1, load.HungUp: 1}
	if got.due() != 9 || got.late != 3 || !maps.Equal(got.Statuses, statuses) || got.p(50) != 2 || got.p(99) != 33 {
		t.Errorf("%+v", got)
	}
	if s := got.success(); s != 4.0/9 {
		t.Errorf("success %v", s)
	}
	if got := figure(result, 0, time.Second, signIn); got.due() != 0 || !math.IsNaN(got.success()) {
		t.Errorf("of no requests: %+v", got)
	}
}

func TestRecovery(t *testing.T) {
	t.Parallel()
	const end, stop = time.Second, 5 * time.Second
	slowUntil := func(until time.Duration, everyN int) *load.Result {
		r := &load.Result{}
		for i, due := 0, end; due < stop; i, due = i+1, due+ms {
			took := ms
			if due < until || everyN > 0 && i%everyN == 0 {
				took = 50 * ms
			}
			r.Records = append(r.Records, record(refresh, 200, due, took))
		}
		return r
	}
	for name, tc := range map[string]struct {
		result   *load.Result
		from, to time.Duration
		ok       bool
	}{
		"at once":      {slowUntil(end, 0), 0, 0, true},
		"after 700 ms": {slowUntil(1700*ms, 0), 650 * ms, 700 * ms, true},
		"1 of 200":     {slowUntil(end, 200), 0, 200 * ms, true},
		"1 of 20":      {slowUntil(end, 20), 3 * time.Second, 4 * time.Second, false},
		"never":        {slowUntil(stop, 0), 4 * time.Second, 4 * time.Second, false},
		"no requests":  {&load.Result{}, 4 * time.Second, 4 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := recovered(tc.result, end, stop, 10*ms, refresh, code)
			if got < tc.from || got > tc.to || ok != tc.ok {
				t.Errorf("%s, %v, want %s to %s, %v", got, ok, tc.from, tc.to, tc.ok)
			}
		})
	}
	failed := slowUntil(end, 0)
	for i := range failed.Records {
		if failed.Records[i].Due < 2*time.Second {
			failed.Records[i].Status = 503
		}
	}
	if got, _ := recovered(failed, end, stop, 10*ms, refresh); got < 900*ms {
		t.Errorf("quick refusals count as recovered after %s", got)
	}
}

// outcomes are figures of requests of which some are ok, in that time.
func outcomes(due, ok int, took time.Duration) figures {
	return figures{Figures: load.Figures{
		Took: make([]time.Duration, due), OK: slices.Repeat([]time.Duration{took}, ok), Statuses: map[int]int{200: ok, load.HungUp: due - ok},
	}}
}

// found is the report of a server that is as it should be under control, and is not without.
func found() *report {
	r := &report{capacity: 100, tokenCapacity: 3000, costs: []cost{
		{refresh, 250, 0, 9}, {code, 300, 0, 9}, {clientOnly, 170, 0, 9}, {signIn, 1000, 25000, 9},
	}}
	add := func(control, series string, load float64, greedy bool, ok int, p99 time.Duration, goodput float64, memory int64) {
		tokens := outcomes(1000, ok, p99*ms)
		r.rows = append(r.rows, row{
			series: series, control: control, load: load, greedy: greedy, seconds: 5, tokens: tokens, all: tokens, goodput: goodput, memoryPeak: memory,
			classes: map[class]figures{refresh: tokens, code: tokens, clientOnly: tokens, signIn: outcomes(100, 7, ms)},
		})
	}
	add("none", mixSeries, 0.5, false, 1000, 2, 50, 100)
	add("none", mixSeries, 12, false, 500, 20, 80, 200)
	add("none", greedySeries, 12, false, 900, 20, 80, 200)
	add("none", greedySeries, 12, true, 500, 20, 80, 200)
	add("enforce", mixSeries, 0.5, false, 1000, 2, 50, 100)
	add("enforce", mixSeries, 12, false, 995, 5, 950, 110)
	add("enforce", greedySeries, 12, false, 995, 5, 80, 200)
	add("enforce", greedySeries, 12, true, 990, 5, 80, 200)
	r.recoveries = []recovery{{"none", 12, 1.5, false}, {"enforce", 12, 1.5, true}}
	return r
}

func TestBars(t *testing.T) {
	t.Parallel()
	r := found()
	verdicts := func(control string) (all []string) {
		for _, b := range r.bars(control) {
			all = append(all, fmt.Sprintf("%.5s %t", b.what, b.met))
		}
		return all
	}
	good := []string{"refre true", "p99 o true", "goodp true", "usefu true", "recov true", "peak  true", "refre true"}
	if got := verdicts("enforce"); !slices.Equal(got, good) {
		t.Errorf("under control: %q", got)
	}
	bad := []string{"refre false", "p99 o false", "goodp false", "usefu true", "recov false", "peak  false", "refre false"}
	if got := verdicts("none"); !slices.Equal(got, bad) {
		t.Errorf("without: %q", got)
	}
	// More work than fits: the first bar does not hold for it.
	r.rows[5].classes[refresh] = outcomes(16000, 8000, ms)
	if got := r.bars("enforce")[0].what; strings.HasPrefix(got, "refreshes and codes succeed") {
		t.Errorf("a bar for more than the processor can do: %s", got)
	}
}
