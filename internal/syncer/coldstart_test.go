package syncer_test

import (
	"fmt"
	"slices"
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

// TestColdStrict: while a store is slow, requests under a strict limit with room wait for their permits, and none is denied.
func TestColdStrict(t *testing.T) {
	const atOnce = 128
	strict := ratelimit.NewLimit("strict", 1_000_000, time.Hour)
	strict.MakeStrict()
	strict.LeaseWait = 2 * time.Second
	own, total := []ratelimit.Limit{strict}, []ratelimit.Limit{ratelimit.NewLimit("total", 1_000_000, time.Hour)}
	source := []ratelimit.Limit{ratelimit.NewLimit("source", 1_000_000, time.Hour)}
	for name, policy := range map[string]ratelimit.Policy{
		"alone":                   {User: own, Client: own},
		"with a total":            {User: own, Client: own, Total: total},
		"with another one":        {User: append(slices.Clip(own), total...), Client: own},
		"with a source":           {User: own, Client: own, Source: source},
		"with a total and source": {User: own, Client: own, Source: source, Total: total},
	} {
		for _, latency := range []time.Duration{30 * time.Millisecond, 100 * time.Millisecond} {
			t.Run(fmt.Sprint(name, latency), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := newMember(t, newNetwork(latency), 1, 0, nil)
					policy := compiled(t, policy).ForRequest(ratelimit.GrantPassword, "192.0.2.1")
					var denied atomic.Int64
					var asking sync.WaitGroup
					for range atOnce {
						asking.Go(func() {
							if d, _ := m.counters.Await(t.Context(), m.now(), keyOf(0), policy, 1); d.Rejected() {
								denied.Add(1)
							}
						})
					}
					asking.Wait()
					check.Equal(t, "denied", denied.Load(), 0)
				})
			})
		}
	}
}
