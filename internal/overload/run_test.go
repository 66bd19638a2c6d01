package overload

import (
	"context"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// beats runs n beats at a constant wait, with this many requests of each class per beat.
func (g *Shedder) beats(n int, wait time.Duration, arriving map[Class]int) {
	for range n {
		for class, count := range arriving {
			for range count {
				if _, err := g.Admit(context.Background(), &Request{ClientID: "c", Class: class}); err == nil {
					g.Leave()
				}
			}
		}
		g.beat(time.Now(), beat, wait)
	}
}

func always(time.Duration) bool { return true }

// TestRefreshesAlone checks that refreshes are not refused before their own target wait is reached,
// even if there is nothing else to refuse.
func TestRefreshesAlone(t *testing.T) {
	g := New(DefaultSettings(), nil)
	g.busy = always
	refreshes := map[Class]int{Refresh: 20}
	g.beats(400, 59*time.Millisecond, refreshes)
	if st := g.Stats(); st.Refused > 0 || st.UpTo != ratelimit.CriticalityUnset {
		t.Errorf("below their target: %+v", st)
	}
	g.beats(400, 120*time.Millisecond, refreshes)
	if st := g.Stats(); st.Refused < 0.5 || st.UpTo != ratelimit.CriticalPlus {
		t.Errorf("above it for ten seconds: %+v", st)
	}
}

// TestUseless checks that sending more requests counts as useless when nearly all requests of the
// highest present criticality are refused.
func TestUseless(t *testing.T) {
	for class, wait := range map[Class]time.Duration{Refresh: time.Second, ClientCredentials: time.Second} {
		g := New(DefaultSettings(), nil)
		g.busy = always
		g.beats(1000, wait, map[Class]int{class: 2, Introspection: 2})
		if st := g.Stats(); st.Useless == 0 || st.Overloaded == 0 {
			t.Errorf("%v: %+v", class, st)
		}
		g.beats(1000, 0, map[Class]int{class: 2})
		if st := g.Stats(); st.UpTo != ratelimit.CriticalityUnset || st.Refused != 0 {
			t.Errorf("%v, after the overload: %+v", class, st)
		}
	}
	g := New(DefaultSettings(), nil)
	g.busy = always
	g.beats(100, 50*time.Millisecond, map[Class]int{Refresh: 2, Introspection: 20})
	if st := g.Stats(); st.Useless > 0 || st.UpTo != ratelimit.Sheddable {
		t.Errorf("while refreshes are answered: %+v", st)
	}
}

// TestCallersGiveUp checks that next to other programs, requests beyond the capacity of this
// process are refused once callers hang up before their turn, and that refusing ends when callers
// stop hanging up.
func TestCallersGiveUp(t *testing.T) {
	g := New(DefaultSettings(), nil)
	g.busy = func(time.Duration) bool { return false }
	beats := func(n int, gone uint64) float64 {
		for range n {
			g.gone.Add(gone)
			g.beats(1, 50*time.Millisecond, map[Class]int{ClientCredentials: 10})
		}
		return g.Stats().Refused
	}
	if refused := beats(400, 0); refused > 0 || g.Stats().Wait != 50*time.Millisecond {
		t.Errorf("refused %.3f while nobody hangs up: %+v", refused, g.Stats())
	}
	if refused := beats(400, 5); refused < 0.5 {
		t.Errorf("refused %.3f while half of the callers hang up", refused)
	}
	if refused := beats(2000, 0); refused > 0 {
		t.Errorf("refused %.3f when nobody hangs up any more", refused)
	}
}

func TestProcessorUse(t *testing.T) {
	var u processorUse
	used := time.Duration(0)
	run := func(beats int, processors float64) float64 {
		var mean float64
		for range beats {
			used += time.Duration(processors * float64(beat))
			mean = u.take(used, beat)
		}
		return mean
	}
	if got := run(80, 1.5); got < 1.49 || got > 1.5 {
		t.Errorf("one and a half processors for two seconds: %.3f", got)
	}
	if got := run(1, 0); got < 1.3 {
		t.Errorf("after one idle beat: %.3f", got)
	}
	if got := run(80, 0.1); got > 0.11 {
		t.Errorf("a tenth for two seconds: %.3f", got)
	}
}

// TestProcessorsOfProcess checks that the usable processors are the minimum of all limits.
func TestProcessorsOfProcess(t *testing.T) {
	for name, tt := range map[string]struct {
		places, there int
		quota, want   float64
		stopped       time.Duration
	}{
		"all":                          {4, 4, 0, 4, 0},
		"one place more":               {5, 4, 0, 4, 0},
		"few places":                   {2, 4, 0, 2, 0},
		"half a processor, of four":    {2, 4, 0.5, 0.5, 75 * time.Millisecond}, // Go uses at least two places
		"half a processor, of one":     {2, 1, 0.5, 0.5, 50 * time.Millisecond},
		"a quota of more than places":  {2, 4, 3, 2, 0},
		"one and a half, rounded to 2": {3, 2, 1.5, 1.5, 25 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			use := processorUse{quota: tt.quota}
			check.Equal(t, "processors", use.processors(tt.places, tt.there), tt.want)
			check.Equal(t, "stopped", use.stopped(tt.places, tt.there), tt.stopped)
		})
	}
}

// TestQuotaIsUsedUp checks that the usage of this process in an hour is little compared to its
// processors, and more than a tiny quota.
func TestQuotaIsUsedUp(t *testing.T) {
	g := New(DefaultSettings(), nil)
	check.Equal(t, "busy without a quota", g.busy(time.Hour), false)
	g.SetQuota(1e-9)
	check.Equal(t, "busy with one", g.busy(time.Hour), true)
}

// TestNoRoomIsAnOverload checks that operators see it, and that the retry time grows.
func TestNoRoomIsAnOverload(t *testing.T) {
	s := DefaultSettings()
	s.MaxInFlight = 10
	g := New(s, nil)
	for range 7 {
		_, err := g.Admit(t.Context(), &Request{Class: Introspection})
		check.OK(t, err)
	}
	if _, err := g.Admit(t.Context(), &Request{Class: Introspection}); err == nil {
		t.Fatal("there is room for an eighth")
	}
	g.beat(time.Now(), beat, 0)
	if st := g.Stats(); st.UpTo != ratelimit.Sheddable || st.Overloaded == 0 {
		t.Errorf("%+v", st)
	}
	check.Equal(t, "level; what has room is not refused", g.level.Load(), 0)
}

// TestModesForgetEachOther checks that the level of dry-run mode is not enforced when the mode
// becomes enforce.
func TestModesForgetEachOther(t *testing.T) {
	s := DefaultSettings()
	s.Mode = ratelimit.DryRun
	g := New(s, nil)
	g.busy = always
	g.beats(1000, time.Second, map[Class]int{ClientCredentials: 2})
	if st := g.Stats(); st.Refused < 0.4 || st.Refused > mostInDryRun {
		t.Errorf("in dry-run: %+v", st)
	}
	g.Set(DefaultSettings())
	g.beats(1, 0, nil)
	if st := g.Stats(); st.Refused > 0 || st.Overloaded > 0 {
		t.Errorf("after the change: %+v", st)
	}
}
