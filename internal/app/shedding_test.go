package app

import (
	"fmt"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/httpapi"
	"oauth-server/internal/overload"
	"oauth-server/internal/overload/storequeue"
	"oauth-server/internal/ratelimit"
)

// An overloaded server is ready while it sheds, down only after nearly everything is refused for a
// while, and ready again only after that has been over for a while.
func TestReadinessWhileOverloaded(t *testing.T) {
	const s = time.Second
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name string
		mode ratelimit.Mode
		// Both map a second to a new value. useless: nearly all is refused. down: the expected state.
		useless, down map[int]bool
	}{
		{"a burst", ratelimit.Enforce, map[int]bool{5: true, 14: false}, nil},
		{"bursts", ratelimit.Enforce, map[int]bool{5: true, 14: false, 15: true, 24: false, 25: true, 34: false}, nil},
		{"for long", ratelimit.Enforce, map[int]bool{5: true, 45: false}, map[int]bool{14: true, 54: false}},
		{"again at once", ratelimit.Enforce, map[int]bool{5: true, 16: false, 18: true, 20: false}, map[int]bool{14: true, 29: false}},
		{"again and again", ratelimit.Enforce, map[int]bool{5: true, 16: false, 25: true, 27: false, 36: true, 38: false}, map[int]bool{14: true, 47: false}},
		{"in dry-run", ratelimit.DryRun, map[int]bool{5: true}, nil},
		{"off", ratelimit.Off, map[int]bool{5: true}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := overload.Stats{Mode: tt.mode}
			w := shedWatch{stats: func() overload.Stats { return st }}
			useless, down := false, false
			for i := range 60 {
				if now, changes := tt.useless[i]; changes {
					useless, st.Useless = now, 0
				}
				if useless {
					st.Useless += s
				}
				if now, changes := tt.down[i]; changes {
					down = now
				}
				c := condition{shedding: w.look(began.Add(time.Duration(i) * s))}
				check.Equal(t, fmt.Sprintf("down after %d s", i), c.readiness(true).Status == httpapi.Down, down)
			}
		})
	}
}

// Calls that are refused before the store do not change the status, and are reported with the other
// problems.
func TestReadinessWhileCallsAreRefusedBeforeTheStore(t *testing.T) {
	st := storequeue.Stats{Mode: ratelimit.Enforce, Refusing: 12 * time.Second, UpTo: ratelimit.SheddablePlus}
	c := condition{beforeStore: beforeStore(&st)}
	check.Equal(t, "while it refuses", c.readiness(true), httpapi.Readiness{Status: httpapi.Ready, Checks: map[string]string{
		"overload_store": "refusing requests that wait too long for the store, for 12s, up to sheddable_plus",
	}})
	c.silent = time.Minute
	check.Equal(t, "status while the store is away", c.readiness(true).Status, httpapi.Degraded)
	st.Mode = ratelimit.DryRun
	check.Equal(t, "in dry-run", beforeStore(&st), "")
	check.Equal(t, "while nothing is refused", beforeStore(&storequeue.Stats{Mode: ratelimit.Enforce}), "")
}

// A server that is down becomes ready when operators switch overload control off.
func TestReadinessAfterOverloadControlIsSwitchedOff(t *testing.T) {
	st := overload.Stats{Mode: ratelimit.Enforce, Useless: time.Minute, Overloaded: time.Minute, UpTo: ratelimit.CriticalPlus}
	w, now := shedWatch{stats: func() overload.Stats { return st }}, time.Now()
	check.Equal(t, "before", w.look(now).down, true)
	st.Mode = ratelimit.Off
	check.Equal(t, "switched off", w.look(now), shedding{})
	st.Mode, st.Useless = ratelimit.Enforce, time.Second
	check.Equal(t, "switched on", w.look(now).down, false)
}
