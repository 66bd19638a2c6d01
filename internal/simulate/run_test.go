package simulate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate"
	"oauth-server/internal/simulate/traffic"
)

// script yields requests, and records their outcomes.
type script struct {
	all     []traffic.Request
	next    int
	answers []string
	err     error
}

func (s *script) Next(r *traffic.Request) bool {
	if s.next == len(s.all) {
		return false
	}
	*r = s.all[s.next]
	s.next++
	return true
}

func (s *script) Answer(r *traffic.Request, a traffic.Answer) {
	s.answers = append(s.answers, fmt.Sprintf("%v %s%s %v", r.At.Sub(testworld.Noon), r.Client, r.User, a.Outcome))
}

func (s *script) Err() error { return s.err }

// add adds n requests, beginning at at, with every between them.
func (s *script) add(at, every time.Duration, n int, r traffic.Request) {
	for i := range n {
		r.At = testworld.Noon.Add(at + time.Duration(i)*every)
		s.all = append(s.all, r)
	}
}

func credentials(client string) traffic.Request {
	return traffic.Request{Client: client, Grant: "client_credentials"}
}

func refresh(client, user string) traffic.Request {
	return traffic.Request{Client: client, User: user, Grant: "refresh_token"}
}

func perMinute(requests int64) []ratelimit.Limit {
	return []ratelimit.Limit{ratelimit.NewLimit("per-minute", requests, time.Minute)}
}

func shared(name string, requests int64) []ratelimit.Limit {
	return []ratelimit.Limit{ratelimit.NewLimit(name, requests, time.Minute)}
}

// limited returns policies with one limit for all.
func limited(requests int64, edits ...func(*ratelimit.Settings)) simulate.Policies {
	s := ratelimit.DefaultSettings()
	s.Default.User, s.Default.Client = perMinute(requests), perMinute(requests)
	for _, edit := range edits {
		edit(&s)
	}
	return simulate.Policies{Settings: s}
}

func run(t *testing.T, source traffic.Source, o simulate.Options) *simulate.Result {
	t.Helper()
	r, err := simulate.Run(t.Context(), source, o)
	check.OK(t, err)
	return r
}

// TestClients checks all reported figures of a client.
func TestClients(t *testing.T) {
	var s script
	s.add(0, 20*time.Second, 3, credentials("quiet"))
	failed := credentials("quiet")
	failed.Failed = true
	s.add(time.Minute, time.Second, 5, failed)
	s.add(2*time.Minute, time.Second, 5, refresh("shop", "ada"))
	s.add(2*time.Minute+10*time.Second, time.Second, 4, refresh("shop", "bob"))
	s.add(4*time.Minute, time.Minute, 2, refresh("shop", "ada"))
	r := run(t, &s, simulate.Options{Policies: limited(3)})
	check.Equal(t, "clients", r.Clients, []simulate.Client{
		{
			ClientID: "shop", Counts: simulate.Counts{Requests: 11, Admitted: 8, Denied: 3, Wasted: 6},
			RefusedShare: 3.0 / 11, WastedShare: 0.75, UsersHit: 2,
			WorstMinute: &simulate.Minute{At: testworld.Noon.Add(2 * time.Minute), Requests: 9, Refused: 3},
			// Ada is blocked from 12:02:03 on, until the three requests before begin to leave the
			// window at 12:03:00.
			LongestBlocked: 57.001, LongestWait: 57.001, Series: r.Clients[0].Series,
		},
		{
			ClientID: "quiet", Counts: simulate.Counts{Requests: 3, Admitted: 3, Failed: 5, Wasted: 2},
			WastedShare: 2.0 / 3, Series: r.Clients[1].Series,
		},
	})
	check.Equal(t, "total", r.Total, simulate.Counts{Requests: 14, Admitted: 11, Denied: 3, Failed: 5, Wasted: 8})
	check.Equal(t, "reach", r.Reach, simulate.Reach{ClientCount: 2, ClientsHit: 1, UsersHit: 2})
	check.Equal(t, "from", r.From, testworld.Noon)
	check.Equal(t, "to", r.To, testworld.Noon.Add(5*time.Minute))
}

// TestOrderOfTheServer: what TestPredictionIsEnforcement cannot show, because the server has no such requests.
func TestOrderOfTheServer(t *testing.T) {
	refreshes := ratelimit.NewLimit("refreshes", 1, time.Hour)
	refreshes.Grants = ratelimit.GrantRefresh
	address := netip.MustParseAddr("192.0.2.7")
	from := func(r traffic.Request) traffic.Request {
		r.Source = address
		return r
	}
	for name, tt := range map[string]struct {
		policy   ratelimit.Policy
		requests func(s *script)
		want     simulate.Counts
	}{
		"trusted": {ratelimit.Policy{Trusted: true}, func(s *script) { s.add(0, time.Second, 9, credentials("shop")) }, simulate.Counts{Admitted: 9}},
		"dry-run": {ratelimit.Policy{Mode: ratelimit.DryRun}, func(s *script) { s.add(0, time.Second, 9, credentials("shop")) }, simulate.Counts{Admitted: 9}},
		"for another grant": {
			ratelimit.Policy{User: []ratelimit.Limit{refreshes}},
			func(s *script) {
				s.add(0, time.Second, 9, traffic.Request{Client: "shop", User: "ada", Grant: "urn:ietf:params:oauth:grant-type:device_code"})
			},
			simulate.Counts{Admitted: 9},
		},
		"source": {
			ratelimit.Policy{Source: shared("source", 2)},
			func(s *script) {
				s.add(0, time.Second, 3, from(refresh("shop", "ada")))
				s.add(5*time.Second, time.Second, 2, refresh("shop", "bob")) // from an unknown address
			},
			simulate.Counts{Admitted: 4, Denied: 1},
		},
		"users who are not known": {
			ratelimit.Policy{
				Total: shared("total", 8), Source: shared("source", 5),
				Ban: &ratelimit.Ban{Denials: 1, Within: time.Minute, For: time.Hour, Factor: 1, Max: time.Hour},
			},
			func(s *script) {
				unknown := refresh("shop", "")
				unknown.Unknown = true
				s.add(0, time.Second, 6, from(unknown))
				s.add(10*time.Second, time.Second, 3, credentials("shop")) // the client itself has a limit of three, and a ban, of its own
				s.add(20*time.Second, time.Second, 1, unknown)
			},
			simulate.Counts{Admitted: 8, Denied: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, p := script{}, limited(3, func(s *ratelimit.Settings) { s.Clients = map[string]ratelimit.Policy{"shop": tt.policy} })
			tt.requests(&s)
			got := run(t, &s, simulate.Options{Policies: p}).Total
			got.Requests, got.Wasted = 0, 0
			check.Equal(t, "counts", got, tt.want)
		})
	}
}

// TestLifetimeOfTheLog: a lifetime in the log takes precedence over the options.
func TestLifetimeOfTheLog(t *testing.T) {
	var s script
	short := credentials("shop")
	short.Lifetime = 10 * time.Second
	s.add(0, 20*time.Second, 3, short)
	check.Equal(t, "wasted", run(t, &s, simulate.Options{}).Total.Wasted, 0)
	var other script
	other.add(0, 20*time.Second, 3, credentials("shop"))
	check.Equal(t, "wasted, of an hour", run(t, &other, simulate.Options{}).Total.Wasted, 2)
}

// TestUsersWhoAreNotKnown: unknown users have no equal tokens, and no limit is searched for them.
func TestUsersWhoAreNotKnown(t *testing.T) {
	var s script
	unknown := refresh("shop", "")
	unknown.Unknown = true
	s.add(0, time.Second, 9, unknown)
	s.add(20*time.Second, time.Second, 2, refresh("shop", "ada"))
	r := run(t, &s, simulate.Options{Goal: &simulate.Goal{Share: 1, Of: simulate.OfClients, Limits: []simulate.Form{{Spec: "1/60s", Limit: perMinute(1)[0]}}}})
	check.Equal(t, "wasted", r.Total.Wasted, 1)
	check.Equal(t, "the lowest limit", r.Targets[0].Requests, 2)
}

// fast returns a limit per ten seconds with short frames.
func fast(requests int64) ratelimit.Limit {
	l := ratelimit.NewLimit("per-10s", requests, 10*time.Second)
	l.Frames = 10
	return l
}

// TestAnswers: answers come in the order of the times at which they are sent.
func TestAnswers(t *testing.T) {
	longest := ratelimit.Duration(10 * time.Second)
	p := limited(3, func(s *ratelimit.Settings) {
		s.Default.Client, s.Default.User, s.Default.MaxWait = []ratelimit.Limit{fast(2)}, []ratelimit.Limit{fast(2)}, &longest
	})
	var s script
	s.add(500*time.Millisecond, 0, 3, credentials("a"))
	s.add(9*time.Second, time.Second, 4, credentials("b"))
	run(t, &s, simulate.Options{Policies: p})
	check.Equal(t, "answers", strings.Join(s.answers, ", "),
		"500ms a 0, 500ms a 0, 9s b 0, 10s b 0, 500ms a 1, 11s b 1, 12s b 1")
}

// TestEnforced: limits in dry-run, or outside the canary share, are applied as if enforced. Limits
// that are off are not.
func TestEnforced(t *testing.T) {
	p := limited(1, func(s *ratelimit.Settings) {
		s.Mode, s.CanaryPercent = ratelimit.DryRun, 0
		s.Clients = map[string]ratelimit.Policy{"dry": {Mode: ratelimit.DryRun}, "off": {Mode: ratelimit.Off}}
	})
	for name, tt := range map[string]struct {
		p    simulate.Policies
		want uint64
	}{"as configured": {p, 0}, "enforced": {p.Enforced(), 2}} {
		var s script
		for _, id := range []string{"dry", "off", "other"} {
			s.add(0, 0, 2, credentials(id))
		}
		check.Equal(t, name, run(t, &s, simulate.Options{Policies: tt.p}).Total.Denied, tt.want)
	}
	check.Equal(t, "mode of the copied policy", p.Settings.Clients["dry"].Mode, ratelimit.DryRun)
}

// TestNotes: the notes mention data missing in the log, and data that exceeded bounds.
func TestNotes(t *testing.T) {
	var s script
	s.add(0, time.Second, 3, refresh("shop", ""))
	for i := range 200 {
		s.add(0, 0, 1, credentials(fmt.Sprint("client ", i)))
	}
	s.all = s.all[3:]
	s.add(time.Second, time.Second, 3, refresh("shop", ""))
	unknown := refresh("shop", "")
	unknown.Unknown = true
	s.add(5*time.Second, time.Second, 2, unknown)
	p := limited(9, func(s *ratelimit.Settings) { s.Default.Source = shared("source", 100) })
	got := run(t, &s, simulate.Options{Policies: p, MaxKeys: 64}).Notes
	check.Equal(t, "notes", len(got), 4)
	for i, want := range []string{"205 requests have no address", "3 user requests have no user", "2 requests are for unknown users", "requests shared a counter"} {
		if !strings.Contains(got[i], want) {
			t.Errorf("note %d is %q, without %q", i, got[i], want)
		}
	}
}

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
