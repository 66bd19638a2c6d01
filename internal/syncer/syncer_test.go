package syncer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
	"oauth-server/internal/syncer/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wrapped is a store of which a test changes what it needs to.
type wrapped struct {
	memstore.Store
	apply func(instance string, writes []syncer.Write) ([]syncer.Outcome, error)
	load  func(ids []ratelimit.CounterID) ([]syncer.Record, error)
	took  time.Duration // of every call
	calls atomic.Int64
	now   func() (time.Time, error)
}

func (w *wrapped) wait(ctx context.Context) error {
	return (&port{}).travel(ctx, w.took)
}

// Apply implements [syncer.Store].
func (w *wrapped) Apply(ctx context.Context, instance string, writes []syncer.Write) ([]syncer.Outcome, error) {
	w.calls.Add(1)
	if err := w.wait(ctx); err != nil {
		return nil, err
	}
	if w.apply != nil {
		return w.apply(instance, writes)
	}
	return w.Store.Apply(ctx, instance, writes)
}

// Load implements [syncer.Store].
func (w *wrapped) Load(ctx context.Context, ids []ratelimit.CounterID) ([]syncer.Record, error) {
	if err := w.wait(ctx); err != nil {
		return nil, err
	}
	if w.load != nil {
		return w.load(ids)
	}
	return w.Store.Load(ctx, ids)
}

// Now implements [syncer.Store].
func (w *wrapped) Now(ctx context.Context) (time.Time, error) {
	if w.now != nil {
		return w.now()
	}
	return w.Store.Now(ctx)
}

// alone starts an instance on a store, in simulated time.
func alone(t *testing.T, store *wrapped, change func(*syncer.Config)) *member {
	t.Helper()
	m := &member{counters: ratelimit.NewCounters(200_000), now: time.Now}
	cfg := syncer.DefaultConfig()
	cfg.Seed = 1
	if change != nil {
		change(&cfg)
	}
	m.syncer = syncer.New(m.counters, store, store, cfg)
	m.syncer.Start(t.Context())
	t.Cleanup(m.syncer.Kill)
	return m
}

// pass lets simulated time pass, until everybody waits again.
func pass(d time.Duration) {
	wait(d)
	synctest.Wait()
}

// say prints a figure if somebody asked for them.
func say(format string, args ...any) {
	if *numbers {
		fmt.Printf(format+"\n", args...)
	}
}

// stored adds up what the store has of a key.
func stored(t *testing.T, store syncer.Store, k ratelimit.Key) (n int64) {
	t.Helper()
	records, err := store.Load(t.Context(), []ratelimit.CounterID{{ClientID: k.ClientID, Username: k.Username}})
	require.NoError(t, err)
	for _, r := range records {
		for _, f := range r.Frames {
			n += f.Count
		}
	}
	return n
}

var perMinute = ratelimit.NewLimit("per-minute", 100, time.Minute)

// TestManyKeysInFewCommands: 100,000 dirty keys go out in little more than a hundred.
func TestManyKeysInFewCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 100_000
		store, policy := &wrapped{took: 10 * time.Millisecond}, policyOf(t, perMinute)
		m := alone(t, store, nil)
		for i := range keys {
			m.counters.Take(m.now(), keyOf(i), policy, 1)
		}
		left, err := m.syncer.Stop(t.Context())
		require.NoError(t, err)
		require.Zero(t, left)
		say("%d dirty keys flushed in %d commands", keys, store.calls.Load())
		require.LessOrEqual(t, store.calls.Load(), int64(110))
		require.Equal(t, keys, store.Len())
	})
}

// TestStopSaysWhatIsLeft: with the store away, the final flush ends with its
// time and says what it could not write.
func TestStopSaysWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &wrapped{apply: func(string, []syncer.Write) ([]syncer.Outcome, error) { return nil, errNetwork }}
		m := alone(t, store, nil)
		for i := range 3 {
			m.counters.Take(m.now(), keyOf(i), policyOf(t, perMinute), 2)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		left, err := m.syncer.Stop(ctx)
		require.Equal(t, syncer.Left{Keys: 3, Requests: 6}, left)
		require.ErrorContains(t, err, "6 requests of 3 counters")
		require.Equal(t, 10*time.Second, time.Since(began))
	})
}

// TestStopAbortsACall: a store that does not answer at all holds nobody up.
func TestStopAbortsACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &wrapped{took: time.Hour}
		m := alone(t, store, func(c *syncer.Config) { c.Timeout = 2 * time.Hour })
		m.counters.Take(m.now(), keyOf(0), policyOf(t, perMinute), 2)
		pass(5 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		left, err := m.syncer.Stop(ctx)
		require.Error(t, err)
		require.EqualValues(t, 2, left.Requests)
		require.Equal(t, time.Second, time.Since(began))
	})
}

// TestStopBeforeStart does no harm.
func TestStopBeforeStart(t *testing.T) {
	s := syncer.New(ratelimit.NewCounters(1), &memstore.Store{}, nil, syncer.DefaultConfig())
	left, err := s.Stop(t.Context())
	require.NoError(t, err)
	require.Zero(t, left)
}

// TestPanicsAreSurvived: a panic anywhere in the store is reported and counted,
// and what it interrupted is done again.
func TestPanicsAreSurvived(t *testing.T) {
	for _, where := range []string{"apply", "load"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				store := &wrapped{}
				panics := 3
				boom := func() {
					if panics--; panics >= 0 {
						panic("boom")
					}
				}
				if where == "apply" {
					store.apply = func(instance string, writes []syncer.Write) ([]syncer.Outcome, error) {
						boom()
						return store.Store.Apply(t.Context(), instance, writes)
					}
				} else {
					store.load = func(ids []ratelimit.CounterID) ([]syncer.Record, error) {
						boom()
						return store.Store.Load(t.Context(), ids)
					}
				}
				m := alone(t, store, func(c *syncer.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
				m.counters.Take(m.now(), keyOf(0), policyOf(t, perMinute), 7)
				pass(30 * time.Second)
				require.EqualValues(t, 7, stored(t, store, keyOf(0)))
				require.EqualValues(t, 3, m.syncer.Stats().Panics)
				require.Contains(t, log.String(), "panic=boom")
				_, err := m.syncer.Stop(t.Context())
				require.NoError(t, err)
			})
		})
	}
}

// TestRejectedWrite: a write that the store refuses is kept, reported once and
// tried again seldom, while others go on.
func TestRejectedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		store := &wrapped{}
		var refuse atomic.Bool
		refuse.Store(true)
		store.apply = func(instance string, writes []syncer.Write) ([]syncer.Outcome, error) {
			out := make([]syncer.Outcome, len(writes))
			for i := range writes {
				if refuse.Load() && writes[i].ID.Username == "user-0" {
					out[i] = syncer.Outcome{Status: syncer.Rejected, Err: errors.New("validation failed")}
					continue
				}
				one, _ := store.Store.Apply(t.Context(), instance, writes[i:i+1])
				out[i] = one[0]
			}
			return out, nil
		}
		m := alone(t, store, func(c *syncer.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		policy := policyOf(t, ratelimit.NewLimit("per-hour", 100, time.Hour))
		for range 60 {
			m.counters.Take(m.now(), keyOf(0), policy, 1)
			m.counters.Take(m.now(), keyOf(1), policy, 1)
			pass(time.Second)
		}
		require.Zero(t, stored(t, store, keyOf(0)))
		require.Positive(t, stored(t, store, keyOf(1)))
		require.InDelta(t, 2, m.syncer.Stats().Rejected, 1)
		require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("validation failed")))
		require.NotContains(t, log.String(), "user-0", "names of users stay out of the log")

		refuse.Store(false)
		pass(time.Minute)
		require.EqualValues(t, 60, stored(t, store, keyOf(0)))
		_, err := m.syncer.Stop(t.Context())
		require.NoError(t, err)
	})
}

// TestForeignDocument: what makes no sense is counted and reported once, and
// what does make sense still limits.
func TestForeignDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		store := &wrapped{}
		store.load = func(ids []ratelimit.CounterID) (out []syncer.Record, _ error) {
			for _, id := range ids {
				out = append(out, syncer.Record{
					ID: id, Version: 3, Etag: 4, Problem: "version is a string",
					Frames: []ratelimit.FrameCount{{Name: time.Now().Truncate(time.Minute).Unix(), Count: 100}, {Name: 1 << 50, Count: -1}},
				})
			}
			return out, nil
		}
		m := alone(t, store, func(c *syncer.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		policy := policyOf(t, perMinute)
		for i := range 5 {
			m.counters.Take(m.now(), keyOf(i), policy, 1)
		}
		pass(time.Second)
		d := m.counters.Take(m.now(), keyOf(0), policy, 1)
		require.True(t, d.Rejected())
		require.GreaterOrEqual(t, m.syncer.Stats().Foreign, int64(5))
		require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("makes no sense")))
		require.NoError(t, m.syncer.Degraded())
	})
}

// TestStoreAway: decisions go on, nothing is lost, calls become few and small,
// and everybody who asks is told.
func TestStoreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		store := &wrapped{}
		store.apply = func(instance string, writes []syncer.Write) ([]syncer.Outcome, error) {
			if away.Load() {
				return nil, errNetwork
			}
			return store.Store.Apply(t.Context(), instance, writes)
		}
		store.load = func(ids []ratelimit.CounterID) ([]syncer.Record, error) {
			if away.Load() {
				return nil, errNetwork
			}
			return store.Store.Load(t.Context(), ids)
		}
		store.now = func() (time.Time, error) {
			if away.Load() {
				return time.Time{}, errNetwork
			}
			return time.Now(), nil
		}
		m := alone(t, store, func(c *syncer.Config) { c.Beat = time.Hour })
		policy := policyOf(t, ratelimit.NewLimit("per-day", 1000, 24*time.Hour))
		for i := range 2000 {
			m.counters.Take(m.now(), keyOf(i), policy, 1)
		}
		pass(15 * time.Second)
		require.NoError(t, m.syncer.Degraded())
		require.Equal(t, 2000, store.Len())

		away.Store(true)
		before := store.calls.Load()
		for range 600 {
			m.counters.Take(m.now(), keyOf(0), policy, 1)
			m.counters.Take(m.now(), keyOf(1), policy, 1)
			pass(time.Second)
		}
		require.ErrorIs(t, m.syncer.Degraded(), errNetwork)
		st := m.syncer.Stats()
		require.True(t, st.Degraded)
		require.Less(t, st.Batch, 100)
		require.InDelta(t, (10 * time.Minute).Seconds(), st.Age.Seconds(), 30)
		say("ten minutes without a database: %d calls, %d keys in memory, %d counts waiting", store.calls.Load()-before, m.counters.Len(), 2*600)
		require.Less(t, store.calls.Load()-before, int64(200), "it backs off")
		require.EqualValues(t, 601, m.counters.Usage(m.now(), keyOf(0))[0].Estimate)

		away.Store(false)
		pass(20 * time.Second)
		require.NoError(t, m.syncer.Degraded())
		say("  20 s after it is back all of them are written")
		require.EqualValues(t, 601, stored(t, store, keyOf(0)))
		require.EqualValues(t, 601, stored(t, store, keyOf(1)))
		require.Zero(t, m.syncer.Stats().DegradedFor)
	})
}

// TestClock: the offset to the store's clock is measured and applied, and a
// clock that cannot be read is asked again soon.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &wrapped{}
		fails := 1
		store.now = func() (time.Time, error) {
			if fails--; fails >= 0 {
				return time.Time{}, errNetwork
			}
			return time.Now().Add(7 * time.Second), nil
		}
		m := alone(t, store, nil)
		require.Zero(t, m.syncer.Stats().Offset)
		pass(5 * time.Second)
		require.Equal(t, 7*time.Second, m.syncer.Stats().Offset)

		m.counters.Take(m.now(), keyOf(0), policyOf(t, ratelimit.NewLimit("per-second", 5, time.Second)), 1)
		pass(time.Second)
		records, err := store.Load(t.Context(), []ratelimit.CounterID{{ClientID: "client", Username: "user-0"}})
		require.NoError(t, err)
		require.Equal(t, time.Now().Unix()-1+7, records[0].Frames[0].Name)
	})
}

// TestInstances: everybody knows how many are alive; who leaves is gone at
// once, and who dies after a while.
func TestInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &wrapped{}
		var all []*member
		for range 3 {
			all = append(all, alone(t, store, func(c *syncer.Config) { c.Host = "host" }))
		}
		pass(5 * time.Second)
		for _, m := range all {
			require.Equal(t, 3, m.syncer.Stats().Instances)
		}
		_, err := all[0].syncer.Stop(t.Context())
		require.NoError(t, err)
		pass(5 * time.Second)
		require.Equal(t, 2, all[2].syncer.Stats().Instances)
		all[1].syncer.Kill()
		pass(20 * time.Second)
		require.Equal(t, 1, all[2].syncer.Stats().Instances)
		require.Equal(t, "host", all[2].syncer.Self().Host)
	})
}

// TestFirstSeen: a key is decided on at once, and read at once.
func TestFirstSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, policy := &wrapped{took: 10 * time.Millisecond}, policyOf(t, perMinute)
		first := alone(t, store, nil)
		first.counters.Take(first.now(), keyOf(0), policy, 100)
		pass(time.Second)

		second := alone(t, store, nil)
		d := second.counters.Take(second.now(), keyOf(0), policy, 1)
		require.Equal(t, ratelimit.Allowed, d.Outcome, "nothing is known of it yet")
		pass(25 * time.Millisecond)
		d = second.counters.Take(second.now(), keyOf(0), policy, 1)
		require.Equal(t, ratelimit.Denied, d.Outcome)
	})
}

// TestFarBelow: keys that are hardly used cost at least five times fewer
// writes than a flush every second.
func TestFarBelow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const seconds, instances = 60, 10
		keys := 50
		if *numbers {
			keys = 2000
		}
		store, policy := &wrapped{took: 5 * time.Millisecond}, policyOf(t, ratelimit.NewLimit("per-minute", 6000, time.Minute))
		var all []*member
		for range instances {
			all = append(all, alone(t, store, nil))
		}
		r := newRand(1)
		everySecond := 0 // writes of instances that flush what is dirty every second
		for range seconds {
			type pair struct{ key, instance int }
			dirty := map[pair]bool{}
			for n := keys * instances; n > 0; n-- { // one a second at each instance
				p := pair{r.IntN(keys), r.IntN(instances)}
				dirty[p] = true
				m := all[p.instance]
				m.counters.Take(m.now(), keyOf(p.key), policy, 1)
				wait(time.Second / time.Duration(keys*instances))
			}
			everySecond += len(dirty)
		}
		var writes, commands int64
		for _, m := range all {
			st := m.syncer.Stats()
			writes += st.Writes
			commands += st.Calls[syncer.OpApply]
		}
		say("%d keys at a tenth of their limit, %d instances, %d s: %d writes in %d commands; every second %d, %.1f times as many",
			keys, instances, seconds, writes, commands, everySecond, float64(everySecond)/float64(writes))
		require.Greater(t, everySecond, int(5*writes))
	})
}

func TestStatusNames(t *testing.T) {
	for want, s := range map[string]syncer.Status{
		"unknown": syncer.Unknown, "applied": syncer.Applied, "conflict": syncer.Conflict, "rejected": syncer.Rejected,
	} {
		require.Equal(t, want, s.String(), strconv.Itoa(int(s)))
	}
}

// TestSlowStore: calls shrink until each takes a bearable time, even where the
// store is so slow that a full one would never end in its time.
func TestSlowStore(t *testing.T) {
	for _, perItem := range []time.Duration{6 * time.Millisecond, 40 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			store := &slowStore{perItem: perItem}
			m := &member{counters: ratelimit.NewCounters(10_000), now: time.Now}
			m.syncer = syncer.New(m.counters, store, nil, syncer.DefaultConfig())
			m.syncer.Start(t.Context())
			policy := policyOf(t, ratelimit.NewLimit("per-day", 1000, 24*time.Hour))
			for i := range 3000 {
				m.counters.Take(m.now(), keyOf(i), policy, 1)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			left, err := m.syncer.Stop(ctx)
			require.NoError(t, err, "%v an item", perItem)
			require.Zero(t, left)
			require.Equal(t, 3000, store.Len())
		})
	}
}

// slowStore takes a time for each write.
type slowStore struct {
	memstore.Store
	perItem time.Duration
}

// Apply implements [syncer.Store].
func (s *slowStore) Apply(ctx context.Context, instance string, writes []syncer.Write) ([]syncer.Outcome, error) {
	if err := (&port{}).travel(ctx, time.Duration(len(writes))*s.perItem); err != nil {
		return nil, err
	}
	return s.Store.Apply(ctx, instance, writes)
}
