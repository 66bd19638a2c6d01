package overload

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
)

// TestWaitIsTheShortestOfFive checks that a single long wait is not an overload, and that one short
// wait shows that there is no overload.
func TestWaitIsTheShortestOfFive(t *testing.T) {
	g := New(DefaultSettings(), nil)
	g.busy = always
	waits := func(ms ...time.Duration) time.Duration {
		for _, m := range ms {
			g.beat(time.Now(), beat, m*time.Millisecond)
		}
		return g.Stats().Wait / time.Millisecond
	}
	check.Equal(t, "after four long ones", waits(90, 90, 90, 90), 0)
	check.Equal(t, "after five", waits(80), 80)
	check.Equal(t, "after a short one", waits(7), 7)
	check.Equal(t, "four later", waits(60, 50, 70, 80), 7)
	check.Equal(t, "five later", waits(90), 50)
}

// TestFortyMeasurementsASecond checks that the loop measures 40 times a second, uses each
// measurement, and refuses nothing after it has ended for any reason. It uses no probe, because
// pipes are not simulated.
func TestFortyMeasurementsASecond(t *testing.T) {
	for name, failure := range map[string]error{"stopped": nil, "failed": errors.New("closed")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := New(DefaultSettings(), nil)
				g.busy = always
				measured := 0
				ctx, stop := context.WithTimeout(t.Context(), time.Second+beat/2)
				defer stop()
				err := g.run(ctx, func() (time.Duration, error) {
					measured++
					g.demand.arrived[0].Add(20)
					if measured == 40 {
						g.level.Store(1)
						return 0, failure
					}
					return time.Duration(measured) * time.Millisecond, nil
				})
				check.Equal(t, "error", err, failure)
				check.Equal(t, "measurements in a second", measured, 40)
				check.Equal(t, "level in the end", g.level.Load(), 0)
				if failure != nil {
					check.Equal(t, "shortest of the five before", g.Stats().Wait, 35*time.Millisecond)
				}
				if rate := g.demand.rate; rate < 750 || rate > 800 {
					t.Errorf("%.0f requests a second, want nearly 800", rate)
				}
			})
		})
	}
}

// TestNoTimeBetweenBeats checks that the share still follows the wait after two beats at the same
// time of a coarse clock.
func TestNoTimeBetweenBeats(t *testing.T) {
	g := New(DefaultSettings(), nil)
	g.busy = always
	g.beat(time.Now(), 0, 0)
	g.beats(400, time.Second, map[Class]int{Refresh: 20})
	g.beats(400, 0, map[Class]int{Refresh: 20})
	check.Equal(t, "refused after an overload", g.Stats().Refused, 0.0)
}
