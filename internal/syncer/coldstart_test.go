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
	const limit, instances, atOnce = 200, 3, 64
	hourly := []ratelimit.Limit{ratelimit.NewLimit("hourly", limit, time.Hour)}
	own := []ratelimit.Limit{ratelimit.NewLimit("own", limit-1, time.Hour)}
	strict := own[0]
	strict.MakeStrict()
	for name, tc := range map[string]struct {
		policy ratelimit.Policy
		users  int
	}{
		"user":             {ratelimit.Policy{User: hourly}, 1},
		"total":            {ratelimit.Policy{User: own, Total: hourly}, limit},
		"source":           {ratelimit.Policy{User: own, Source: hourly}, limit},
		"total and strict": {ratelimit.Policy{User: []ratelimit.Limit{strict}, Total: hourly}, limit},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := newNetwork(5 * time.Millisecond)
				tc.policy.Client = own
				policy := compiled(t, tc.policy).ForRequest(ratelimit.GrantPassword, "192.0.2.1")
				admits := func(m *member, user int) bool {
					d, _ := m.counters.Await(t.Context(), m.now(), keyOf(user%tc.users), policy, 1)
					return !d.Rejected()
				}
				before := newMember(t, net, 1, 0, nil)
				for i := range limit {
					check.Equal(t, "admitted", admits(before, i), true)
				}
				before.stop(t)
				var over atomic.Int64
				var asking sync.WaitGroup
				for i := range instances {
					m := newMember(t, net, uint64(i+2), 0, nil)
					for user := range atOnce {
						asking.Go(func() {
							if admits(m, user) {
								over.Add(1)
							}
						})
					}
				}
				asking.Wait()
				check.Equal(t, "over the limit", over.Load(), 3*instances)
			})
		})
	}
}
