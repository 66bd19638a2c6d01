package serve

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

func TestDemoDoesNotDrain(t *testing.T) {
	check.Equal(t, "drain delay", demoConfig("demo.db").DrainDelay, 0)
}

// The demo promises ten tokens and then refusals, whenever its lines are pasted.
func TestDemoAdmitsTenWhereverTheMinuteEnds(t *testing.T) {
	policies, err := ratelimit.Compile(demoConfig("demo.db").RateLimit.Settings)
	check.OK(t, err)
	for second := range 60 {
		counters, admitted := counting.NewCounters(1), 0
		for i := range 12 {
			now := testworld.Noon.Add(time.Duration(second)*time.Second + time.Duration(i)*300*time.Millisecond)
			if d := counters.Take(now, ratelimit.Key{ClientID: "demo"}, policies.For("demo"), 1); !d.Rejected() {
				admitted++
			}
		}
		if admitted != demoLimit {
			t.Errorf("%d admitted from second %d on", admitted, second)
		}
	}
}
