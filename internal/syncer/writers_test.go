package syncer_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/syncer"
)

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

// TestFormerWritersLeave: the same for a store of one process, which restarts.
func TestFormerWritersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, policy := &wrapped{}, policyOf(t, ratelimit.NewLimit("per-minute", 100_000, time.Minute))
		for range 20 {
			m := aloneOn(t, store, nil, nil)
			m.take(keyOf(0), policy, 1)
			pass(15 * time.Second)
			m.syncer.Kill()
		}
		stays := aloneOn(t, store, nil, nil)
		for range 600 {
			stays.take(keyOf(0), policy, 1)
			pass(time.Second)
		}
		check.Equal(t, "writers", len(store.Documents()[0].Writers), 1)
	})
}

// TestManyWriters: an instance writes, and recognises its own writes, even if many writers
// have higher sequences with a future time, and even if answers are lost. Writers above the bound
// are removed if their sequences are old.
func TestManyWriters(t *testing.T) {
	for _, tc := range []struct {
		name    string
		writers int
		ahead   time.Duration // of the time in their sequences
		lost    int           // answers to writes
		stay    int           // writers in the end, with the instance
	}{
		{"of the future, more than stay", 2 * syncer.MaxWriters, 24 * time.Hour, 0, 2*syncer.MaxWriters + 1},
		{"of the future, as many as are read", 10_000, 24 * time.Hour, 2, 10_001},
		{"of the past", syncer.MaxWriters + 90, -24 * time.Hour, 0, syncer.MaxWriters + 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &wrapped{}
				r := exchange.Record{ID: idOf(0), Version: 4, Etag: 4, Frame: 3_600_000, Writers: map[string]int64{}}
				for i := range tc.writers {
					r.Writers[fmt.Sprintf("w%d", i)] = time.Now().Add(tc.ahead).UnixMilli() << 20
				}
				store.Put(r, time.Now().Add(time.Hour))
				lost := 0
				store.exchange = func(ctx context.Context, items []exchange.Item) ([]exchange.Result, error) {
					results, err := store.Store.Exchange(ctx, items)
					for i := range items {
						if items[i].Write != nil && lost < tc.lost {
							lost++
							results[i] = exchange.Result{Err: errNetwork}
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
				doc := store.Documents()[0]
				check.Equal(t, "writers", len(doc.Writers), tc.stay)
				check.Equal(t, "the document says that writers were removed", doc.Pruned > 0, tc.ahead < 0)
			})
		})
	}
}
