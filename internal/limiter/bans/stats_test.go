package bans_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/limiter/bans"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

// TestStatsOfWhatIsEnforced: bans that have no effect under the present policies are not counted.
func TestStatsOfWhatIsEnforced(t *testing.T) {
	w, e := newWorld(t), rule(t)
	policies := map[string]*ratelimit.Effective{
		"shop": e, "dry": rule(t, inDryRun), "free": rule(t, func(s *ratelimit.Settings) { s.Default.Ban = nil }),
	}
	a, err := bans.New(t.Context(), bans.Options{
		Store: w.store, Counters: counting.NewCounters(1000), Clock: w.clock.Now,
		Policy: func(clientID string) *ratelimit.Effective { return policies[clientID] },
	})
	check.OK(t, err)
	for id := range policies {
		for range 3 {
			a.Denied(w.clock.Now(), ratelimit.Key{ClientID: id}, e)
		}
	}
	check.OK(t, a.Flush(t.Context()))
	check.Equal(t, "stats", a.Stats(), bans.Stats{Active: 1, Longest: time.Minute})
	check.Equal(t, "bans", a.All(ratelimit.Enforce).Len(), 3)
}
