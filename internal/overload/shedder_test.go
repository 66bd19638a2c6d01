package overload

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestOrder checks the order in which kinds of requests are refused, first to last.
func TestOrder(t *testing.T) {
	ranked := func(c Class, set ratelimit.Criticality, trusted bool, standing int) Rank {
		return rankOf(c.criticality(set, trusted), c, standing)
	}
	order := []Rank{
		ranked(SignIn, 0, false, unknown),
		ranked(Introspection, 0, false, unknown),
		ranked(Password, 0, false, unknown),
		ranked(ClientCredentials, 0, false, standing(1, 9)),
		ranked(ClientCredentials, 0, false, standing(0.85, 0.1)),
		ranked(ClientCredentials, 0, false, standing(0.5, 4)),
		ranked(ClientCredentials, 0, false, standing(0.5, 1)),
		ranked(ClientCredentials, 0, false, standing(0.5, 0.2)),
		ranked(ClientCredentials, 0, true, unknown),
		ranked(Refresh, 0, true, standing(1, 9)),
		ranked(Refresh, 0, false, unknown),
		Ranks - 1,
	}
	if !slices.IsSorted(order) || len(slices.Compact(slices.Clone(order))) != len(order) {
		t.Errorf("not in order: %v", order)
	}
	check.Equal(t, "criticality of a refresh under a policy that says sheddable", ranked(Refresh, ratelimit.Sheddable, true, unknown).Criticality(), ratelimit.Sheddable)
}

func TestStandingIsInRange(t *testing.T) {
	for _, usage := range []float64{0, 0.79, 0.8, 0.9, 1, 5} {
		for _, share := range []float64{0, 1e-9, 0.5, 1, 1e9} {
			if got := standing(usage, share); got < 0 || got >= standings || (usage >= near) != (got < 4) {
				t.Errorf("usage %v, share %v: standing %d", usage, share, got)
			}
		}
	}
}

// TestLevel checks that a level refuses the share of requests that it was created for.
func TestLevel(t *testing.T) {
	for _, share := range []float64{0, 0.1, 0.3, 0.5, 0.75, 1} {
		var d demand
		d.arrived[10].Store(400)
		d.arrived[100].Store(100)
		d.arrived[255].Store(500)
		d.fold(beat)
		l := d.level(share)
		var refused float64
		for r, n := range map[Rank]float64{10: 400, 100: 100, 255: 500} {
			for dice := range uint32(100) {
				if l.refuses(r, dice*levelUnit/100) {
					refused += n / 100
				}
			}
		}
		if refused < share*1000-6 || refused > share*1000+6 {
			t.Errorf("share %v: %v of 1000 are refused", share, refused)
		}
	}
}

func TestUpTo(t *testing.T) {
	for l, want := range map[level]ratelimit.Criticality{
		0: ratelimit.CriticalityUnset, 1: ratelimit.Sheddable, levelOf(perCriticality, 0): ratelimit.Sheddable,
		levelOf(perCriticality, 0.5): ratelimit.SheddablePlus, levelOf(Ranks, 0): ratelimit.CriticalPlus,
	} {
		check.Equal(t, fmt.Sprint("refused up to, at level ", l), l.upTo(), want)
	}
}

// full returns a shedder that refuses everything.
func full(mode ratelimit.Mode, seen *[]Outcome) *Shedder {
	s := DefaultSettings()
	s.Mode = mode
	g := New(s, func(_ *Request, o Outcome) { *seen = append(*seen, o) })
	g.level.Store(uint32(levelOf(Ranks, 0)))
	return g
}

func TestModes(t *testing.T) {
	for mode, want := range map[ratelimit.Mode]Outcome{ratelimit.Enforce: Shed, ratelimit.DryRun: WouldShed, ratelimit.Off: Admitted} {
		var seen []Outcome
		g := full(mode, &seen)
		_, err := g.Admit(t.Context(), &Request{ClientID: "shop", Class: Refresh})
		var shed *ShedError
		if refused := errors.As(err, &shed); refused != (want == Shed) || refused && (shed.RetryAfter < time.Second || shed.Short != Processor) {
			t.Errorf("%v: %v", mode, err)
		}
		if want == Admitted && seen != nil || want != Admitted && !slices.Equal(seen, []Outcome{want}) {
			t.Errorf("%v: observed %v", mode, seen)
		}
		if err == nil {
			g.Leave()
		}
		check.Equal(t, string(mode)+", in flight in the end", g.Stats().InFlight, 0)
	}
}

// TestMostInFlight checks that the last tenths of the maximum are reserved for critical requests.
func TestMostInFlight(t *testing.T) {
	s := DefaultSettings()
	s.MaxInFlight = 100
	g := New(s, nil)
	admitted := map[Class]int{}
	for _, c := range []Class{Introspection, ClientCredentials, Revocation, Refresh} {
		for range 200 {
			if _, err := g.Admit(t.Context(), &Request{Class: c}); err == nil {
				admitted[c]++
			}
		}
	}
	if admitted[Introspection] != 70 || admitted[ClientCredentials] != 10 || admitted[Revocation] != 10 || admitted[Refresh] != 10 {
		t.Errorf("admitted %v", admitted)
	}
	for range 100 {
		g.Leave()
	}
	if _, err := g.Admit(t.Context(), &Request{Class: SignIn}); err != nil {
		t.Errorf("after all have left: %v", err)
	}
}

// TestCallersWhoHaveGone checks that requests of callers that have hung up are not worked on under
// overload, and are treated like others otherwise.
func TestCallersWhoHaveGone(t *testing.T) {
	client, server := check.Connected(t)
	ctx := WithConn(t.Context(), server)
	if CallerGone(ctx) {
		t.Error("a caller who is there is taken to have gone")
	}
	_, err := client.Write([]byte("more"))
	check.OK(t, err)
	if CallerGone(ctx) {
		t.Error("a caller who has sent more is taken to have gone")
	}
	var seen []Outcome
	g := full(ratelimit.Enforce, &seen)
	g.level.Store(1)
	if _, err := g.Admit(ctx, &Request{Class: Refresh}); err != nil || seen != nil {
		t.Errorf("admit a caller who is there: %v, observed %v", err, seen)
	}
	check.OK(t, client.Close())
	for !CallerGone(ctx) { // until the end of the connection has arrived
		runtime.Gosched()
	}
	g.level.Store(1)
	if _, err := g.Admit(ctx, &Request{Class: Refresh}); err == nil || !slices.Equal(seen, []Outcome{Abandoned}) {
		t.Errorf("admit a caller who has gone: %v, observed %v", err, seen)
	}
	g.level.Store(0)
	if _, err := g.Admit(ctx, &Request{Class: Refresh}); err != nil {
		t.Errorf("without an overload nobody is asked: %v", err)
	}
	g.wait.Store(int64(DefaultSettings().Target) + 1) // other programs use the processors
	if _, err := g.Admit(ctx, &Request{Class: Refresh}); err == nil || !slices.Equal(seen, []Outcome{Abandoned, Abandoned}) {
		t.Errorf("a caller who has gone while work waits: %v, observed %v", err, seen)
	}
	dry := full(ratelimit.DryRun, &seen)
	if _, err := dry.Admit(ctx, &Request{Class: Refresh}); err != nil {
		t.Errorf("in dry-run: %v", err)
	}
}

// TestProbe checks that the wait is long while goroutines keep all processors busy.
func TestProbe(t *testing.T) {
	p, err := newProbe()
	check.OK(t, err)
	defer p.close()
	stop := make(chan struct{})
	defer close(stop)
	for range 64 * runtime.GOMAXPROCS(0) {
		go func() {
			for {
				select {
				case <-stop:
					return
				default:
					runtime.Gosched()
				}
			}
		}()
	}
	for wait := time.Duration(0); wait < time.Microsecond; { // any wait shows that it is measured
		if wait, err = p.measure(); err != nil {
			t.Fatal(err)
		}
		runtime.Gosched()
	}
}

func TestRunEnds(t *testing.T) {
	g := New(DefaultSettings(), nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- g.Run(ctx) }()
	for g.wait.Load() == 0 { // until it measures
		runtime.Gosched()
	}
	cancel()
	if err := <-ended; err != nil || g.Stats().UpTo != ratelimit.CriticalityUnset {
		t.Errorf("ended with %v, %+v", err, g.Stats())
	}
}

func TestRetryAfterGrows(t *testing.T) {
	for lasted, want := range map[time.Duration][2]time.Duration{
		0: {time.Second, 3 * time.Second}, 20 * time.Second: {5 * time.Second, 15 * time.Second},
		time.Hour: {10 * time.Second, 30 * time.Second},
	} {
		seen := map[time.Duration]bool{}
		for range 200 {
			got := RetryAfter(lasted)
			if got < want[0] || got > want[1] || got%time.Second != 0 {
				t.Fatalf("after %v: %v, want %v to %v", lasted, got, want[0], want[1])
			}
			seen[got] = true
		}
		if len(seen) < 2 {
			t.Errorf("after %v all get %v", lasted, seen)
		}
	}
}

func TestEpisode(t *testing.T) {
	var e episode
	at := func(s int) time.Duration { return time.Duration(s) * time.Second }
	for i, tt := range []struct {
		at    int
		holds bool
		want  int
	}{{1, false, 0}, {2, true, 2}, {3, false, 2}, {6, true, 2}, {10, false, 2}, {11, false, 0}, {12, true, 12}} {
		check.Equal(t, fmt.Sprint("begin after step ", i), e.follow(at(tt.at), tt.holds, 5*time.Second), at(tt.want))
	}
}
