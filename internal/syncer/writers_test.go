package syncer_test

import (
	"context"
	"fmt"
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

// TestSilentWritersLeave: with a window of a minute, the writers of stopped instances leave the
// document after two windows, and so do the frames.
func TestSilentWritersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(time.Millisecond)
		policy := policyOf(t, ratelimit.NewLimit("per-minute", 100_000, time.Minute))
		for range 20 {
			m := newMember(t, net, 1, 0, nil)
			m.take(keyOf(0), policy, 1)
			pass(15 * time.Second)
			m.syncer.Kill()
		}
		stays := newMember(t, net, 2, 0, nil)
		for range 600 {
			stays.take(keyOf(0), policy, 1)
			pass(time.Second)
		}
		doc := net.db.Documents()[0]
		if len(doc.Writers) != 1 || len(doc.Frames) > 16 {
			t.Errorf("after ten minutes the document has %d writers and %d frames", len(doc.Writers), len(doc.Frames))
		}
		if conflicts := stays.syncer.Stats().Conflicts; conflicts > 5 {
			t.Errorf("%d conflicts", conflicts)
		}
		check.Equal(t, "lost", stays.syncer.Stats().Drift, 0)
	})
}

// TestWritersFromTheFuture: an instance writes, and recognises its own writes, even if many writers
// have higher sequences with a future time, and even if answers are lost.
func TestWritersFromTheFuture(t *testing.T) {
	for _, tc := range []struct {
		name    string
		writers int
		lost    int // answers to writes
	}{
		{"more than stay", 2 * syncer.MaxWriters, 0},
		{"as many as are read", 10_000, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &wrapped{}
				r := syncer.Record{ID: idOf(0), Version: 4, Etag: 4, Frame: 3_600_000, Writers: map[string]int64{}}
				for i := range tc.writers {
					r.Writers[fmt.Sprintf("w%d", i)] = time.Now().Add(24*time.Hour).UnixMilli() << 20
				}
				store.Put(r, time.Now().Add(time.Hour))
				lost := 0
				store.exchange = func(ctx context.Context, items []syncer.Item) ([]syncer.Result, error) {
					results, err := store.Store.Exchange(ctx, items)
					for i := range items {
						if items[i].Write != nil && lost < tc.lost {
							lost++
							results[i] = syncer.Result{Err: errNetwork}
						}
					}
					return results, err
				}
				m := alone(t, store, nil)
				policy := policyOf(t, ratelimit.NewLimit("per-hour", 100, time.Hour))
				for n := range int64(5) {
					m.take(keyOf(0), policy, 7)
					pass(time.Minute)
					check.Equal(t, "stored", stored(t, &store.Store, keyOf(0)), 7*n+7)
					check.Equal(t, "not known to be written", m.counters.Usage(m.now(), keyOf(0))[0].Unflushed, 0)
					check.Equal(t, "unconfirmed", m.syncer.Stats().Unconfirmed, 0)
				}
				check.Equal(t, "answers lost", lost, tc.lost)
			})
		})
	}
}
