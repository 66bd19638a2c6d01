package syncer_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// TestColdStart starts three instances while a limit is used up, which only the store knows. A burst at each gets three requests
// more: the others wait until the count is read.
func TestColdStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, instances, atOnce = 200, 3, 64
		net, k := newNetwork(5*time.Millisecond), keyOf(0)
		policy := policyOf(t, ratelimit.NewLimit("hourly", limit, time.Hour))
		before := newMember(t, net, 1, 0, nil)
		for range limit {
			check.Equal(t, "admitted", before.admits(k, policy), true)
		}
		before.stop(t)
		var over atomic.Int64
		var asking sync.WaitGroup
		for i := range instances {
			m := newMember(t, net, uint64(i+2), 0, nil)
			for range atOnce {
				asking.Go(func() {
					if d, _ := m.counters.Await(t.Context(), m.now(), k, policy, 1); !d.Rejected() {
						over.Add(1)
					}
				})
			}
		}
		asking.Wait()
		check.Equal(t, "over the limit", over.Load(), 3*instances)
	})
}
