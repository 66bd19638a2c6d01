package simulate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate"
	"oauth-server/internal/simulate/traffic"
)

// drawTraffic draws requests of a few clients and users over some minutes.
func drawTraffic(t *rapid.T) []traffic.Request {
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	n := rapid.IntRange(1, 300).Draw(t, "requests")
	gap := rapid.SampledFrom([]time.Duration{10 * time.Millisecond, time.Second, 20 * time.Second}).Draw(t, "gap")
	clients := rapid.IntRange(1, 8).Draw(t, "clients")
	at, all := testworld.Noon.Add(-time.Duration(random.IntN(1e9))), []traffic.Request{}
	for range n {
		at = at.Add(time.Duration(random.Int64N(int64(gap))))
		r := traffic.Request{
			At: at, Client: fmt.Sprint("c", min(random.IntN(clients), random.IntN(clients))), Grant: "refresh_token",
			User: []string{"ada", "bob", ""}[random.IntN(3)],
		}
		if r.User == "" {
			r.Grant = "client_credentials"
		}
		r.Failed = random.IntN(20) == 0
		all = append(all, r)
	}
	return all
}

func drawForm(t *rapid.T) simulate.Form {
	l := ratelimit.NewLimit("tried", 100, time.Minute)
	spec := "100/60s,name=tried"
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 1:
		l.Frames, spec = 6, spec+",frames=6"
	case 2:
		l.Algorithm, spec = ratelimit.Fixed, spec+",algorithm=fixed"
	case 3:
		l.Algorithm, spec = ratelimit.Weighted, spec+",algorithm=weighted"
	case 4:
		l.MakeStrict()
		spec += ",strict"
	default:
	}
	return simulate.Form{Spec: spec, Limit: l}
}

// TestTargetOfClients: the limit that was found leaves enough clients untouched, and no lower one
// does. A replay under it confirms this.
func TestTargetOfClients(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all, form := drawTraffic(t), drawForm(t)
		share := rapid.SampledFrom([]float64{0.3, 0.5, 0.75, 0.999, 1}).Draw(t, "share")
		found := target(t, all, form, share, simulate.OfClients)
		untouched := func(requests int64) uint64 {
			w := tried(t, all, form, requests)
			return uint64(w.ClientCount - w.ClientsHit)
		}
		if found.Count == 0 {
			same(t, "requests that did not fail", tried(t, all, form, 1).Requests, 0)
			return
		}
		enough := func(n uint64) bool { return float64(n) >= share*float64(found.Count)-1e-6 }
		// A client with only failed requests does not count.
		none := uint64(tried(t, all, form, 1e9).ClientCount) - found.Count
		same(t, "untouched", untouched(found.Requests)-none, found.Untouched)
		if !enough(found.Untouched) {
			t.Fatalf("%d leaves %d of %d untouched, fewer than %v", found.Requests, found.Untouched, found.Count, share)
		}
		if found.Requests > 1 && enough(untouched(found.Requests-1)-none) {
			t.Fatalf("%d is not the lowest limit", found.Requests)
		}
		for _, o := range found.Outstanding {
			if o.Needs <= found.Requests {
				t.Fatalf("%s needs %d, and is outstanding with %d", o.ClientID, o.Needs, found.Requests)
			}
		}
		same(t, "outstanding", uint64(len(found.Outstanding)), found.Count-found.Untouched)
	})
}

// TestTargetOfRequests checks the same for requests.
func TestTargetOfRequests(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all, form := drawTraffic(t), drawForm(t)
		share := rapid.SampledFrom([]float64{0.3, 0.5, 0.9, 0.99, 1}).Draw(t, "share")
		found := target(t, all, form, share, simulate.OfRequests)
		if found.Count == 0 {
			same(t, "requests that did not fail", tried(t, all, form, 1).Requests, 0)
			return
		}
		w := tried(t, all, form, found.Requests)
		same(t, "count", found.Count, w.Requests)
		same(t, "untouched", found.Untouched, w.Requests-w.Denied)
		if float64(found.Untouched) < share*float64(found.Count)-1e-6 {
			t.Fatalf("%d leaves %d of %d untouched, less than %v", found.Requests, found.Untouched, found.Count, share)
		}
		if found.Requests == 1 {
			return
		}
		if w := tried(t, all, form, found.Requests-1); float64(w.Requests-w.Denied) >= share*float64(w.Requests)-1e-6 {
			t.Fatalf("%d is not the lowest limit", found.Requests)
		}
	})
}

func same(t *rapid.T, what string, got, want uint64) {
	if got != want {
		t.Fatalf("%s: got %d, want %d", what, got, want)
	}
}

// target finds a limit. It returns the zero value if no limit could deny a request.
func target(t *rapid.T, all []traffic.Request, form simulate.Form, share float64, of simulate.Of) simulate.Target {
	goal := &simulate.Goal{Share: share, Of: of, Limits: []simulate.Form{form}}
	r, err := simulate.Run(context.Background(), &script{all: all}, simulate.Options{Goal: goal})
	if errors.Is(err, simulate.ErrNoTarget) {
		return simulate.Target{}
	}
	if err != nil {
		t.Fatal(err)
	}
	return r.Targets[0]
}

// tried replays the requests under the limit of the form with the given number of requests.
func tried(t *rapid.T, all []traffic.Request, form simulate.Form, requests int64) simulate.WhatIf {
	l := form.Limit
	l.Requests = requests
	r, err := simulate.Run(context.Background(), &script{all: all}, simulate.Options{Trials: []simulate.Trial{simulate.TrialOf("tried", l)}})
	if err != nil {
		t.Fatal(err)
	}
	return r.WhatIf[0]
}

// TestLeaveOneDayOut: the peak of a day only affects the answers that leave out other days.
func TestLeaveOneDayOut(t *testing.T) {
	var s script
	const day = 24 * time.Hour
	for i, n := range []struct{ a, b int }{{5, 8}, {9, 10}, {7, 6}} {
		s.add(time.Duration(i)*day, 0, n.a, credentials("a"))
		s.add(time.Duration(i)*day, 0, n.b, credentials("b"))
	}
	form := simulate.Form{Spec: "100/60s", Limit: ratelimit.DefaultLimit()}
	for of, want := range map[simulate.Of]simulate.Target{
		simulate.OfClients: {
			Limit: "10/60s", Requests: 10, Count: 2, Untouched: 2, Min: 8, Max: 10, Curve: []simulate.Point{{9, 1}, {10, 2}},
		},
		simulate.OfRequests: {
			Limit: "10/60s", Requests: 10, Count: 45, Untouched: 45, Min: 8, Max: 10,
		},
	} {
		s.next = 0
		got := run(t, &s, simulate.Options{Goal: &simulate.Goal{Share: 1, Of: of, Limits: []simulate.Form{form}}}).Targets[0]
		want.Share, want.Of, want.Found, want.Outstanding = 1, of, got.Found, []simulate.Outstanding{}
		want.Days = []simulate.Day{{"2026-03-01", 10}, {"2026-03-02", 8}, {"2026-03-03", 10}}
		if of == simulate.OfRequests { // it has the limits that the search tried
			last := len(got.Curve) - 1
			check.Equal(t, "the end of the curve", got.Curve[last], simulate.Point{Requests: 10, Untouched: 45})
			want.Curve = got.Curve
		}
		check.Equal(t, "target of "+string(of), got, want)
	}
	got := run(t, &script{all: s.all}, simulate.Options{Goal: &simulate.Goal{Share: 0.5, Of: simulate.OfClients, Limits: []simulate.Form{form}}}).Targets[0]
	check.Equal(t, "of half of the clients", got.Limit, "9/60s")
	check.Equal(t, "outstanding", got.Outstanding, []simulate.Outstanding{{ClientID: "b", Needs: 10, Requests: 24}})
}

// TestTargetOfSome: clients with limits of their own, or without limits, are left out. The other
// rules of a policy deny no requests.
func TestTargetOfSome(t *testing.T) {
	var s script
	s.add(0, 0, 50, credentials("own"))
	s.add(0, 0, 50, credentials("trusted"))
	s.add(0, 0, 3, credentials("a"))
	s.add(0, 0, 5, refresh("a", "ada"))
	p := limited(1, func(s *ratelimit.Settings) {
		s.Clients = map[string]ratelimit.Policy{"own": {Client: perMinute(7)}, "trusted": {Trusted: true}}
		s.Default.Total = shared("total", 1)
	})
	find := func(grants ratelimit.Grants) (*simulate.Result, error) {
		s.next = 0
		l := ratelimit.DefaultLimit()
		l.Grants = grants
		goal := &simulate.Goal{Share: 1, Of: simulate.OfClients, Limits: []simulate.Form{{Spec: "100/60s", Limit: l}}}
		return simulate.Run(t.Context(), &s, simulate.Options{Policies: p, Goal: goal})
	}
	for grants, want := range map[ratelimit.Grants]int64{0: 5, ratelimit.GrantRefresh: 5} {
		r, err := find(grants)
		check.OK(t, err)
		check.Equal(t, fmt.Sprint("requests with the grants ", grants.Names()), r.Targets[0].Requests, want)
	}
	r, err := find(ratelimit.GrantCode)
	check.Equal(t, "it is ErrNoTarget", errors.Is(err, simulate.ErrNoTarget), true)
	check.Equal(t, "targets of a grant that nobody has", len(r.Targets), 0)
	check.Equal(t, "requests all the same", r.Total.Requests, 108)
}

// TestPeakAcrossMidnight: the peak of a day may begin on the day before. The own peak of that day
// still counts.
func TestPeakAcrossMidnight(t *testing.T) {
	var s script
	s.add(12*time.Hour-time.Millisecond, 0, 5, credentials("a"))
	s.add(12*time.Hour, 0, 1, credentials("a"))
	form := simulate.Form{Spec: "100/60s", Limit: ratelimit.DefaultLimit()}
	got := run(t, &s, simulate.Options{Goal: &simulate.Goal{Share: 1, Of: simulate.OfClients, Limits: []simulate.Form{form}}}).Targets[0]
	check.Equal(t, "requests", got.Requests, 6)
	check.Equal(t, "days", got.Days, []simulate.Day{{"2026-03-01", 6}, {"2026-03-02", 5}})
}
