package syncer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// TestQuietKeys: keys far below their limits cost the database few commands, because they share
// exchanges from their first read on. To print the figures: -numbers
func TestQuietKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, net := newRand(1), newNetwork(time.Millisecond)
		policy := policyOf(t, ratelimit.NewLimit("limit", 100, 20*time.Second))
		var cluster []*member
		for range 3 {
			cluster = append(cluster, newMember(t, net, r.Uint64(), 0, nil))
		}
		const perSecond, seconds, users = 400, 30, 2000
		for range perSecond * seconds {
			wait(time.Duration(r.ExpFloat64() / perSecond * float64(time.Second)))
			check.Equal(t, "admitted", cluster[r.IntN(len(cluster))].admits(keyOf(r.IntN(users)), policy), true)
		}
		var commands, updates int64
		for _, m := range cluster {
			m.syncer.Kill()
			writes, items := m.calls.of(syncer.OpWrite)
			reads, _ := m.calls.of(syncer.OpRead)
			commands, updates = commands+writes+reads, updates+items
		}
		each := func(n int64) float64 { return float64(n) / (perSecond * seconds) }
		say("2,000 quiet users: %.3f commands and %.2f updates for an admitted request", each(commands), each(updates))
		if each(commands) > 0.05 || each(updates) > 0.6 {
			t.Errorf("%d commands and %d updates for %d requests", commands, updates, perSecond*seconds)
		}
	})
}
