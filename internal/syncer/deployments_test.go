//go:build !race

package syncer_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// TestWritersAreBounded: with a window of a day and thirty deployments a day, a document keeps a
// bounded number of writers, and no count is missing. That includes the counts of an instance that
// was cut off the whole time with an unconfirmed write.
func TestWritersAreBounded(t *testing.T) {
	oneProcessor(t)
	synctest.Test(t, func(t *testing.T) {
		const instances, deployments = 20, 30
		seldom := func(c *syncer.Config) { c.Beat, c.Interval = 30*time.Second, 10*time.Second }
		net := newNetwork(time.Millisecond)
		policy := policyOf(t, perDay)
		wait(time.Until(time.Now().Truncate(24 * time.Hour).Add(24 * time.Hour)))

		var cut atomic.Bool
		p := newPort(net, 99)
		p.cut = cut.Load
		lost := startMember(t, p, 99, 0, seldom)
		lost.take(keyOf(0), policy, 7)
		pass(time.Second)
		cut.Store(true) // from here on its next write is unconfirmed
		lost.take(keyOf(0), policy, 5)
		admitted, most := int64(12), 0
		for range deployments {
			var alive []*member
			for range instances {
				m := newMember(t, net, uint64(admitted), 0, seldom)
				m.take(keyOf(0), policy, 1)
				admitted++
				alive = append(alive, m)
			}
			pass(time.Minute)
			for _, m := range alive {
				if m.take(keyOf(0), policy, 1).Outcome == ratelimit.Allowed {
					admitted++
				}
			}
			pass(2 * time.Minute)
			most = max(most, len(net.db.Documents()[0].Writers))
			for _, m := range alive {
				m.syncer.Kill() // killed without a goodbye
			}
		}
		say("%d deployments of %d instances in a window of a day: at most %d writers", deployments, instances, most)
		if limit := syncer.MaxWriters + 2*instances + 1; most > limit || most < syncer.MaxWriters {
			t.Errorf("at most %d writers, want a bound of %d that was reached", most, limit)
		}
		if net.db.Documents()[0].Pruned == 0 {
			t.Error("the document does not say that writers were removed")
		}
		cut.Store(false)
		pass(time.Minute)
		lost.stop(t)
		check.Equal(t, "stored", stored(t, net.db, keyOf(0)), admitted)
	})
}
