package metrics_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/observe/metrics"
	"oauth-server/internal/ratelimit"
)

// TestDelays checks that a client with requests that may wait has the delay outcomes from the
// start, and others once they are counted.
func TestDelays(t *testing.T) {
	m, reg := newMetrics(t, metrics.Options{MaxClients: 10})
	wait := ratelimit.Duration(time.Second)
	policies := snapshotOf(map[string]ratelimit.Policy{"shop": {MaxWait: &wait}})
	m.WatchPolicies(func() metrics.PolicySnapshot { return policies })
	for _, id := range []string{"shop", "app"} {
		m.Decision(id, "password", ratelimit.Allowed)
	}
	m.Decision("other-one", "password", ratelimit.Delayed)
	families, err := reg.Gather()
	check.OK(t, err)
	var got []string
	for _, f := range families {
		for _, one := range f.GetMetric() {
			if l := one.GetLabel(); f.GetName() == "oauth_ratelimit_decisions_total" && strings.Contains(l[2].GetValue(), "delay") {
				got = append(got, fmt.Sprint(l[0].GetValue(), " ", l[2].GetValue(), " ", one.GetCounter().GetValue()))
			}
		}
	}
	check.Equal(t, "series", got, []string{
		"other-one delayed 1", "shop candidate_would_delay 0", "shop delayed 0", "shop would_delay 0",
	})
}
