package syncer_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/syncer"
)

// readFirst makes a store read every document before its write, as MongoDB does when the find is
// quicker than the bulk write.
func readFirst(t *testing.T, store *wrapped) {
	t.Helper()
	store.exchange = func(ctx context.Context, items []exchange.Item) ([]exchange.Result, error) {
		reads, writes := make([]exchange.Item, len(items)), make([]exchange.Item, len(items))
		for i, it := range items {
			reads[i] = exchange.Item{ID: it.ID, Read: it.Read}
			writes[i] = exchange.Item{ID: it.ID, Write: it.Write}
		}
		before, err := store.Store.Exchange(ctx, reads)
		if err != nil {
			return nil, err
		}
		results, err := store.Store.Exchange(ctx, writes)
		for i := range results {
			results[i].Read, results[i].Record = before[i].Read, before[i].Record
		}
		return results, err
	}
}

// orders runs a test on a store that reads in either order, and on one that always reads before it
// writes.
func orders(t *testing.T, test func(t *testing.T, store *wrapped)) {
	t.Helper()
	for _, first := range []bool{false, true} {
		t.Run(fmt.Sprintf("reads first %t", first), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &wrapped{}
				if first {
					readFirst(t, store)
				}
				test(t, store)
			})
		})
	}
}

// minuteOf returns the name of the current frame of a minute.
func minuteOf(now time.Time) int64 { return now.Unix() / 60 * 60 }

// TestOldPartsLeave: outdated parts leave a document that is written all the time.
func TestOldPartsLeave(t *testing.T) {
	orders(t, func(t *testing.T, store *wrapped) {
		t.Helper()
		m := alone(t, store, nil)
		policy := policyOf(t, ratelimit.NewLimit("per-minute", 600, time.Minute))
		writers := map[string]int64{}
		for i := range 100 {
			writers[fmt.Sprintf("gone%d", i)] = time.Now().UnixMilli() << 20
		}
		store.Put(exchange.Record{
			ID: idOf(0), Version: 4, Etag: 4, Frame: 60_000, Writers: writers,
			Frames: []ratelimit.FrameCount{{Name: minuteOf(time.Now()), Count: 1}},
		}, time.Now().Add(time.Hour))
		for range 6 * 60 {
			m.take(keyOf(0), policy, 1)
			pass(10 * time.Second)
		}
		d := store.Documents()[0]
		if len(d.Frames) > 10 || len(d.Writers) != 1 {
			t.Errorf("after an hour %d frames and %d writers: %+v", len(d.Frames), len(d.Writers), d)
		}
	})
}

// TestManyFramesLeave: more frames leave a document than are added.
func TestManyFramesLeave(t *testing.T) {
	orders(t, func(t *testing.T, store *wrapped) {
		t.Helper()
		m := alone(t, store, nil)
		limit := ratelimit.NewLimit("per-minute", 600, time.Minute)
		limit.Frames = ratelimit.MaxFrames
		policy := policyOf(t, limit)
		for range 40 * 60 {
			m.take(keyOf(0), policy, 2)
			pass(time.Second)
		}
		if n := len(store.Documents()[0].Frames); n > 9*ratelimit.MaxFrames {
			t.Errorf("%d frames in the document after 40 minutes", n)
		}
		check.Equal(t, "frames that make no sense", m.syncer.Stats().Foreign, 0)
	})
}

// TestNegativeFrameIsMended although requests come all the time.
func TestNegativeFrameIsMended(t *testing.T) {
	orders(t, func(t *testing.T, store *wrapped) {
		t.Helper()
		m := alone(t, store, nil)
		policy := policyOf(t, ratelimit.NewLimit("per-hour", 600, time.Hour))
		m.take(keyOf(0), policy, 1)
		pass(30 * time.Second)
		d := store.Documents()[0]
		d.Frames[0].Count, d.Version = -1000, d.Version+1
		store.Put(d, time.Now().Add(time.Hour))
		for range 100 {
			m.take(keyOf(0), policy, 1)
			pass(20 * time.Second)
		}
		check.Equal(t, "counted", stored(t, &store.Store, keyOf(0)), 101)
	})
}

// TestAbsurdHeads: two processes keep the limit and write the requests that they admit, whatever
// values the document has in its fields besides the counts.
func TestAbsurdHeads(t *testing.T) {
	for _, head := range []exchange.Record{
		{Version: 4, Etag: 4, Frame: 60_000},
		{Version: 4, Etag: 4, Frame: 60_000, Pruned: math.MaxInt64},
		{Version: 4, Etag: 4, Frame: math.MaxInt64},
		{Version: 4, Etag: 4, Frame: -1},
		{Version: 1 << 40, Etag: 4, Frame: 10_000},
		{Version: 1 << 40, Etag: 4, Frame: 60_000, Pruned: math.MaxInt64},
		{Version: 1<<32 - 1, Etag: 4},
		{Version: -7, Etag: 4},
		{Version: 4, Etag: 4, Frame: 10_000, Frames: []ratelimit.FrameCount{}},
		{Version: 4, Etag: 4, Frame: 10_000, Frames: []ratelimit.FrameCount{{Name: 60, Count: -1}}},
	} {
		t.Run(fmt.Sprintf("version %d, frame %d, pruned %d, frames %v", head.Version, head.Frame, head.Pruned, head.Frames), func(t *testing.T) {
			orders(t, func(t *testing.T, store *wrapped) {
				t.Helper()
				cluster := []*member{alone(t, store, nil), alone(t, &store.Store, func(c *syncer.Config) { c.Seed = 2 })}
				pass(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
				policy := policyOf(t, ratelimit.NewLimit("per-minute", 100, time.Minute))
				now := time.Now()
				if head.ID = idOf(0); head.Frames == nil {
					head.Frames = []ratelimit.FrameCount{{Name: minuteOf(now)}}
				}
				head.Writers = map[string]int64{"other": now.UnixMilli() << 20}
				store.Put(head, now.Add(time.Hour))
				admitted := int64(0)
				for i := range 550 {
					if cluster[i%2].admits(keyOf(0), policy) {
						admitted++
					}
					pass(100 * time.Millisecond)
				}
				if admitted < 100 || admitted > 102 {
					t.Errorf("%d admitted, want 100 to 102", admitted)
				}
				check.Equal(t, "counted", stored(t, &store.Store, keyOf(0)), admitted)
			})
		})
	}
}

// TestNoWriteCanLand: if a document matches no condition of a write, it is reported like a document
// with failing writes, and the limit is decided as in an outage.
func TestNoWriteCanLand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &wrapped{}
		m := alone(t, store, nil)
		store.exchange = func(_ context.Context, items []exchange.Item) ([]exchange.Result, error) {
			results := make([]exchange.Result, len(items))
			for i, it := range items {
				results[i] = exchange.Result{Read: it.Read, Status: exchange.Conflict, Record: &exchange.Record{ID: it.ID, Version: 1, Etag: 1, Frame: 60_000}}
			}
			return results, nil
		}
		limit := ratelimit.NewLimit("per-minute", 100, time.Minute)
		limit.OnOutage = ratelimit.Deny
		policy := policyOf(t, limit)
		for range 100 {
			m.take(keyOf(0), policy, 1)
			pass(100 * time.Millisecond)
		}
		if m.syncer.Degraded() == nil {
			t.Error("not degraded after ten seconds of conflicts")
		}
		if d := m.take(keyOf(0), policy, 1); !d.Rejected() || !d.Outage {
			t.Errorf("%v, outage %t", d.Outcome, d.Outage)
		}
	})
}

// TestMovedLimit: two limits swap places in a list, first at one process and then at the other.
// Neither swap frees the key.
func TestMovedLimit(t *testing.T) {
	orders(t, func(t *testing.T, store *wrapped) {
		t.Helper()
		cluster := []*member{alone(t, store, nil), alone(t, &store.Store, func(c *syncer.Config) { c.Seed = 2 })}
		pass(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)))
		second, hour := ratelimit.NewLimit("second", 20, time.Second), ratelimit.NewLimit("hour", 100, time.Hour)
		before, after := policyOf(t, second, hour), policyOf(t, hour, second)
		admitted := 0
		for i := range 1500 {
			for j, m := range cluster {
				policy := before
				if i >= 300+10*j {
					policy = after
				}
				if m.admits(keyOf(0), policy) {
					admitted++
				}
			}
			if i == 40 { // 82 of 100 are used at this point
				pass(8 * time.Minute)
			}
			pass(time.Second)
		}
		if admitted < 100 || admitted > 102 {
			t.Errorf("%d admitted of 100 in the hour", admitted)
		}
	})
}

// TestShorterFramesFree: a document still has the long frames of an old limit, and its key is
// denied under a new limit. The key is free again when it should be, even though no request is
// admitted that could be written.
func TestShorterFramesFree(t *testing.T) {
	for seed := range uint64(usualFrameRuns) { // which of the two writes last is chance
		orders(t, func(t *testing.T, store *wrapped) { //nolint:thelper // all of it is in there
			shorterFramesFree(t, store, seed)
		})
	}
}

func shorterFramesFree(t *testing.T, store *wrapped, seed uint64) {
	t.Helper()
	before := policyOf(t, ratelimit.NewLimit("limit", 1_000_000, 24*time.Hour))
	after := policyOf(t, ratelimit.NewLimit("limit", 20, time.Second))
	renewed := alone(t, store, func(c *syncer.Config) { c.Seed = seed + 100 })
	last := alone(t, &store.Store, func(c *syncer.Config) { c.Seed = seed + 200 })
	pass(5 * time.Second)
	for i := range 1200 { // both are asked, and the old one writes last
		if i%10 == 0 {
			renewed.take(keyOf(0), after, 1)
		}
		last.take(keyOf(0), before, 1)
		pass(100 * time.Millisecond)
	}
	last.stop(t)
	denied := 0
	for range 600 {
		if !renewed.admits(keyOf(0), after) {
			denied++
		}
		pass(time.Second)
	}
	if denied > 5 {
		t.Errorf("%d of 600 denied in ten minutes", denied)
	}
}
