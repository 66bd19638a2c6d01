package main

import (
	"maps"
	"math"
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
