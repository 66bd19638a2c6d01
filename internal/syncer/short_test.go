package syncer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// TestShortWindows: the counts of a short window, far below its limit, are written while they
// matter.
func TestShortWindows(t *testing.T) {
	for _, window := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond, time.Second} {
		t.Run(window.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &wrapped{}
				m := alone(t, store, nil)
				policy := policyOf(t, ratelimit.NewLimit("short", 1000, window))
				pass(time.Second)
				for range 1000 {
					m.take(keyOf(0), policy, 1)
					pass(10 * time.Millisecond)
				}
				lost := m.counters.Stats().Expired
				_, writes := m.calls.of(syncer.OpWrite)
				say("window %v: %d of 1000 counts are never written, %d writes", window, lost, writes)
				if lost > 10 {
					t.Errorf("%d of 1000 counts are never written", lost)
				}
			})
		})
	}
}
