package bans_test

import (
	"fmt"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/limiter/bans"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

// TestWithoutStore: the bans work the same, but apply to this process alone and are lost when it
// ends.
func TestWithoutStore(t *testing.T) {
	e, clock := rule(t), &testworld.Clock{}
	var began []string
	b, err := bans.New(t.Context(), bans.Options{
		Counters: counting.NewCounters(1000), Clock: clock.Now,
		Began: func(b bans.Ban, m ratelimit.Mode) { began = append(began, fmt.Sprint(b.Until.Sub(b.Since), " ", m)) },
	})
	check.OK(t, err)
	for range 2 {
		for range 3 {
			b.Denied(clock.Now(), ada, e)
		}
		_, banned := b.Decide(clock.Now(), ada, e)
		check.Equal(t, "banned", banned, true)
		check.OK(t, b.Refresh(t.Context()))
		clock.Advance(2 * time.Minute)
	}
	check.Equal(t, "began", fmt.Sprint(began), "[1m0s enforce 2m0s enforce]")
	check.Equal(t, "stats", b.Stats(), bans.Stats{})
	clock.Advance(2 * time.Hour)
	check.OK(t, b.Refresh(t.Context()))
	check.Equal(t, "in memory after it is forgotten", b.All(ratelimit.Enforce).Len(), 0)
}
