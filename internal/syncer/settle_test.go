package syncer_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// TestSettle: counts that are dropped from memory during their write are in the store when Settle
// returns, and do not arrive later.
func TestSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &wrapped{took: 200 * time.Millisecond}
		m := alone(t, store, nil)
		defer m.syncer.Kill()
		check.OK(t, m.syncer.Settle(t.Context()))
		policy := policyOf(t, ratelimit.NewLimit("l", 5, time.Minute))
		for range 5 {
			m.take(keyOf(1), policy, 1)
		}
		for store.calls.Load() == 0 {
			wait(time.Millisecond)
		}
		wait(100 * time.Millisecond)
		check.Equal(t, "dropped", m.counters.Reset(keyOf(1)), true)
		soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		check.ErrorIs(t, m.syncer.Settle(soon), context.DeadlineExceeded)
		check.OK(t, m.syncer.Settle(t.Context()))
		before := store.Documents()
		check.Equal(t, "before", len(before), 1)
		wait(time.Minute)
		check.Equal(t, "documents later", store.Documents(), before)
	})
}
