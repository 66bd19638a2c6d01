package syncer_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/syncer"
)

var perDay = ratelimit.NewLimit("per-day", 1_000_000, 24*time.Hour)

// TestStoreAway: while the store is unavailable, decisions continue, no count is lost, calls become
// few and small, and the syncer is degraded.
func TestStoreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, away := cutStore()
		log := &journal{}
		m := alone(t, store, func(c *syncer.Config) { c.Beat, c.Log = time.Hour, log.logger() })
		policy := policyOf(t, perDay)
		for i := range 2000 {
			m.take(keyOf(i), policy, 1)
		}
		pass(15 * time.Second)
		check.OK(t, m.syncer.Degraded())
		check.Equal(t, "documents", store.Len(), 2000)

		away.Store(true)
		before := store.calls.Load()
		for second := range 600 {
			m.take(keyOf(0), policy, 1)
			m.take(keyOf(1), policy, 1)
			pass(time.Second)
			if second == 15 && m.syncer.Degraded() == nil { // a key far below its limit waits up to ten seconds
				t.Error("not degraded five seconds after the first write has failed")
			}
		}
		check.ErrorIs(t, m.syncer.Degraded(), errNetwork)
		st := m.syncer.Stats()
		if !st.Degraded || m.syncer.Batch() > 100 || st.Unconfirmed < 580*time.Second || st.DegradedFor < 580*time.Second || !st.Stalled {
			t.Errorf("after ten minutes: %+v, %d items a call", st, m.syncer.Batch())
		}
		calls := store.calls.Load() - before
		say("ten minutes without a database: %d calls, %d keys in memory, %d counts waiting", calls, m.counters.Len(), 2*600)
		if calls > 200 {
			t.Errorf("%d calls in ten minutes", calls)
		}
		check.Equal(t, "estimate", int64(m.counters.Usage(m.now(), keyOf(0))[0].Estimate), 601)

		away.Store(false)
		pass(20 * time.Second)
		if st := m.syncer.Stats(); st.Degraded || st.DegradedFor != 0 || st.Unconfirmed != 0 || st.Stalled {
			t.Errorf("20 s after it is back: %+v", st)
		}
		say("  20 s after it is back all of them are written")
		check.Equal(t, "stored", stored(t, &store.Store, keyOf(0)), 601)
		check.Equal(t, "stored", stored(t, &store.Store, keyOf(1)), 601)
		check.Equal(t, "lines that it begins", log.count("counts not shared"), 1)
		check.Equal(t, "lines that it ends", log.count("counts shared again"), 1)
	})
}

// TestWritesFailWhileReadsWork: the syncer is degraded within five seconds of the first failed
// write, and stays so while writes fail, whatever else succeeds.
func TestWritesFailWhileReadsWork(t *testing.T) {
	for _, tc := range []struct {
		name string
		fail func(r *exchange.Result) error // changes the outcome of a write
	}{
		{"as commands", func(r *exchange.Result) error { r.Err = errServer; return errServer }},
		{"as statements", func(r *exchange.Result) error { r.Err = errServer; return nil }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var fails atomic.Bool
				store := &wrapped{}
				store.exchange = func(ctx context.Context, items []exchange.Item) ([]exchange.Result, error) {
					if !fails.Load() {
						return store.Store.Exchange(ctx, items)
					}
					var failed error
					out := make([]exchange.Result, len(items))
					for i, it := range items {
						if it.Read {
							read, err := store.Store.Exchange(ctx, []exchange.Item{{ID: it.ID, Read: true}})
							if err != nil {
								return nil, err
							}
							out[i] = read[0]
						}
						if it.Write != nil {
							failed = tc.fail(&out[i])
						}
					}
					return out, failed
				}
				m := alone(t, store, nil)
				policy := policyOf(t, ratelimit.NewLimit("per-hour", 1000, time.Hour))
				for i := range 20 {
					m.take(keyOf(i), policy, 1)
				}
				pass(15 * time.Second)
				fails.Store(true)
				first := time.Time{}
				looks, degraded := 0, 0
				for range 600 {
					for i := range 20 {
						m.take(keyOf(i), policy, 1)
					}
					pass(time.Second)
					if first.IsZero() && m.syncer.Stats().Unknown > 0 {
						first = time.Now()
					}
					if !first.IsZero() && time.Since(first) >= 5*time.Second {
						looks++
						if m.syncer.Degraded() != nil {
							degraded++
						}
					}
				}
				say("writes fail %s: degraded in %d of %d looks", tc.name, degraded, looks)
				if looks < 550 || degraded != looks {
					t.Errorf("degraded in %d of %d looks", degraded, looks)
				}
				fails.Store(false)
				pass(30 * time.Second)
				check.OK(t, m.syncer.Degraded())
				m.stop(t)
				for i := range 20 {
					check.Equal(t, "stored", stored(t, &store.Store, keyOf(i)), 601)
				}
			})
		})
	}
}

// TestOneStatementFails: an unknown error concerns one counter. The write of the counter is retried
// seldom, the others continue, and the syncer is degraded.
func TestOneStatementFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(time.Millisecond)
		m := newMember(t, net, 1, 0, nil)
		policy := policyOf(t, ratelimit.NewLimit("per-hour", 100, time.Hour))
		m.take(keyOf(0), policy, 1)
		pass(5 * time.Second)
		net.breakStatements(idOf(0), true)
		before := m.syncer.Stats().Unknown
		degradedAt := time.Duration(0)
		for i := range 200 { // 20 s
			if i%10 == 0 {
				m.take(keyOf(0), policy, 1)
				m.take(keyOf(1), policy, 1)
			}
			pass(100 * time.Millisecond)
			if degradedAt == 0 && m.syncer.Degraded() != nil {
				degradedAt = time.Duration(i+1) * 100 * time.Millisecond
			}
		}
		tries := m.syncer.Stats().Unknown - before
		say("a statement that fails for 20 s: %d tries, degraded after %v", tries, degradedAt)
		if tries < 5 || tries > 20 {
			t.Errorf("%d tries in 20 s", tries)
		}
		if stored(t, net.db, keyOf(1)) < 10 {
			t.Error("the other counter is not written")
		}
		if degradedAt == 0 {
			t.Error("never degraded")
		}
		net.breakStatements(idOf(0), false)
		pass(15 * time.Second)
		if err := m.syncer.Degraded(); err != nil {
			t.Error(err)
		}
		m.stop(t)
		check.Equal(t, "stored", stored(t, net.db, keyOf(0)), 21)
	})
}

// TestLimitChangedMeanwhile: changing a limit while its write fails does not reset the age of the
// write.
func TestLimitChangedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(time.Millisecond)
		m := newMember(t, net, 1, 0, nil)
		net.breakStatements(idOf(0), true)
		l := ratelimit.NewLimit("per-hour", 20, time.Hour)
		began := time.Now()
		for i := range 120 {
			l.SoftRatio = 0.5 + float64(i%2)/10
			m.take(keyOf(0), policyOf(t, l), 2)
			m.take(keyOf(1), policyOf(t, l), 2)
			pass(2 * time.Second)
			st := m.syncer.Stats()
			if i > 5 && (!st.Degraded || st.Unconfirmed < time.Since(began)-3*time.Second) {
				t.Fatalf("after %v: degraded %t, unconfirmed for %v", time.Since(began), st.Degraded, st.Unconfirmed)
			}
		}
		net.breakStatements(idOf(0), false)
		pass(15 * time.Second)
		if st := m.syncer.Stats(); st.Degraded || st.Unconfirmed != 0 {
			t.Errorf("degraded %t, unconfirmed for %v", st.Degraded, st.Unconfirmed)
		}
	})
}

// TestCounterGone: a counter disappears because its key has new limits. The syncer does not wait
// for the unconfirmed write of this counter.
func TestCounterGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(time.Millisecond)
		m := newMember(t, net, 1, 0, nil)
		net.breakStatements(idOf(0), true)
		hour, day := ratelimit.NewLimit("per-hour", 20, time.Hour), ratelimit.NewLimit("per-day", 20, 24*time.Hour)
		m.take(keyOf(0), policyOf(t, hour, day), 5)
		pass(10 * time.Second)
		if m.syncer.Stats().Unconfirmed < 5*time.Second {
			t.Fatalf("%+v", m.syncer.Stats())
		}
		m.take(keyOf(0), policyOf(t, day), 1)
		net.breakStatements(idOf(0), false)
		pass(10 * time.Second)
		if st := m.syncer.Stats(); st.Degraded || st.Unconfirmed != 0 {
			t.Errorf("degraded %t, unconfirmed for %v", st.Degraded, st.Unconfirmed)
		}
	})
}

// TestRejectedWrite: a write that the store refuses is kept, reported once and tried again seldom,
// while others continue.
func TestRejectedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, store := &journal{}, &wrapped{}
		var refuse atomic.Bool
		refuse.Store(true)
		store.exchange = func(ctx context.Context, items []exchange.Item) ([]exchange.Result, error) {
			out := make([]exchange.Result, len(items))
			for i, it := range items {
				if refuse.Load() && it.Write != nil && it.ID.Username == "user-0" {
					out[i] = exchange.Result{Status: exchange.Rejected, Err: errors.New("validation failed")}
					continue
				}
				one, err := store.Store.Exchange(ctx, items[i:i+1])
				if err != nil {
					return nil, err
				}
				out[i] = one[0]
			}
			return out, nil
		}
		m := alone(t, store, func(c *syncer.Config) { c.Log = log.logger() })
		policy := policyOf(t, ratelimit.NewLimit("per-hour", 100, time.Hour))
		for range 60 {
			m.take(keyOf(0), policy, 1)
			m.take(keyOf(1), policy, 1)
			pass(time.Second)
		}
		check.Equal(t, "stored of the one that is refused", stored(t, &store.Store, keyOf(0)), 0)
		if stored(t, &store.Store, keyOf(1)) == 0 {
			t.Error("the other is not written")
		}
		if n := m.syncer.Stats().Rejected; n < 1 || n > 3 {
			t.Errorf("tried %d times in a minute", n)
		}
		check.Equal(t, "log lines", log.count("validation failed"), 1)
		check.Equal(t, "names of users in the log", log.count("user-0"), 0)
		if m.syncer.Degraded() == nil {
			t.Error("a write that is refused for a minute does not show")
		}

		refuse.Store(false)
		pass(time.Minute)
		check.Equal(t, "stored", stored(t, &store.Store, keyOf(0)), 60)
		m.stop(t)
	})
}

// TestPanicsAreSurvived: a panic in the store is reported and counted, and the interrupted work is
// done again.
func TestPanicsAreSurvived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, store := &journal{}, &wrapped{}
		panics := 3
		store.exchange = func(ctx context.Context, items []exchange.Item) ([]exchange.Result, error) {
			if panics--; panics >= 0 {
				panic("boom")
			}
			return store.Store.Exchange(ctx, items)
		}
		m := alone(t, store, func(c *syncer.Config) { c.Log = log.logger() })
		m.take(keyOf(0), policyOf(t, perMinute), 7)
		pass(30 * time.Second)
		check.Equal(t, "stored", stored(t, &store.Store, keyOf(0)), 7)
		check.Equal(t, "panics", m.syncer.Stats().Panics, 3)
		check.Equal(t, "log lines", log.count("panic=boom"), 3)
		m.stop(t)
	})
}

// TestForeignDocument: invalid parts of a document are counted and reported once, and the valid
// parts still limit.
func TestForeignDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, store := &journal{}, &wrapped{}
		store.exchange = func(_ context.Context, items []exchange.Item) ([]exchange.Result, error) {
			out := make([]exchange.Result, len(items))
			for i, it := range items {
				out[i] = exchange.Result{Status: exchange.Conflict, Read: it.Read, Record: &exchange.Record{
					ID: it.ID, Version: 3, Etag: 4, Frame: 60_000, Problem: "version is a string",
					Frames: []ratelimit.FrameCount{{Name: time.Now().Truncate(time.Minute).Unix(), Count: 100}, {Name: 1 << 50, Count: -1}},
				}}
			}
			return out, nil
		}
		m := alone(t, store, func(c *syncer.Config) { c.Log = log.logger() })
		policy := policyOf(t, perMinute)
		for i := range 5 {
			m.take(keyOf(i), policy, 1)
		}
		pass(2 * time.Second)
		if d := m.take(keyOf(0), policy, 1); !d.Rejected() {
			t.Error("the count that makes sense does not limit")
		}
		if m.syncer.Stats().Foreign < 5 {
			t.Errorf("%d documents were counted", m.syncer.Stats().Foreign)
		}
		check.Equal(t, "log lines", log.count("problem=invalid"), 1)
	})
}

// TestFirstSeen: a key is decided on at once. Its document is read with the next exchange of many
// keys, or at once after a few requests. A fourth of a second can pass until the loop plans the
// exchange, which is due after a second, a tenth more at most, on the next step of the grid.
func TestFirstSeen(t *testing.T) {
	for _, tc := range []struct {
		requests int64
		within   time.Duration
	}{{1, 1700 * time.Millisecond}, {3, 25 * time.Millisecond}} {
		synctest.Test(t, func(t *testing.T) {
			store, policy := &wrapped{took: 10 * time.Millisecond}, policyOf(t, perMinute)
			first := alone(t, store, nil)
			first.take(keyOf(0), policy, 100)
			pass(time.Second)

			second := alone(t, store, nil)
			if d := second.take(keyOf(0), policy, tc.requests); d.Outcome != ratelimit.Allowed {
				t.Error("denied although nothing is known of it yet")
			}
			pass(tc.within)
			check.Equal(t, "outcome once its document was read", second.take(keyOf(0), policy, 1).Outcome, ratelimit.Denied)
		})
	}
}

func TestStatusNames(t *testing.T) {
	for want, s := range map[string]exchange.Status{
		"unknown": exchange.Unknown, "applied": exchange.Applied, "conflict": exchange.Conflict, "rejected": exchange.Rejected,
	} {
		check.Equal(t, "name", s.String(), want)
	}
}
