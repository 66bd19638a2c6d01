package syncer_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/syncer"
)

// cutStore returns a store that fails every exchange while away is set, and always accepts
// heartbeats.
func cutStore() (store *wrapped, away *atomic.Bool) {
	store, away = &wrapped{}, &atomic.Bool{}
	store.exchange = func(ctx context.Context, items []exchange.Item) ([]exchange.Result, error) {
		if away.Load() {
			return nil, errNetwork
		}
		return store.Store.Exchange(ctx, items)
	}
	return store, away
}

// TestFailuresOfThePast: an instance without anything left to exchange recovers soon after the
// store does. The failures of its last exchanges no longer count.
func TestFailuresOfThePast(t *testing.T) {
	perSecond := ratelimit.NewLimit("per-second", 1000, time.Second)
	perMinute := ratelimit.NewLimit("per-minute", 10, time.Minute)
	for _, tc := range []struct {
		name  string
		limit ratelimit.Limit
		n     int64 // requests, when the store has just become unavailable
		away  time.Duration
	}{
		{"writes of counts that have expired", perSecond, 300, 20 * time.Second},
		{"reads of a key that nobody asks for", perMinute, 0, 2 * time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, away := cutStore()
				m := alone(t, store, nil)
				tc.limit.OnOutage = ratelimit.Deny
				policy := policyOf(t, tc.limit)
				m.take(keyOf(0), policy, 6) // more than half of it: it is read every two seconds
				pass(10 * time.Second)
				m.take(keyOf(0), policy, 1)
				away.Store(true)
				if tc.n > 0 {
					m.take(keyOf(0), policy, tc.n)
				}
				pass(5 * time.Second)
				if st := m.syncer.Stats(); !st.Degraded || !st.Stalled {
					t.Errorf("the store is away: %+v", st)
				}
				pass(tc.away)
				away.Store(false)
				pass(20 * time.Second)
				if st := m.syncer.Stats(); st.Degraded || st.Stalled || st.Unconfirmed != 0 {
					t.Errorf("20 s after it is back: %+v, %v", st, m.syncer.Degraded())
				}
				if d := m.take(keyOf(1), policy, 1); d.Outcome != ratelimit.Allowed || d.Outage {
					t.Errorf("the first request of a key: %v, on outage %t", d.Outcome, d.Outage)
				}
			})
		})
	}
}

// TestAgeOfIdleKeys: a key that is used again after a pause has old counts, but no decision was
// based on them.
func TestAgeOfIdleKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := alone(t, &wrapped{}, nil)
		policy := policyOf(t, perDay)
		for range 3 {
			m.take(keyOf(0), policy, 1)
			pass(10 * time.Minute)
			m.take(keyOf(0), policy, 1)
			pass(15 * time.Second)
			if age := m.syncer.Stats().Age; age < 5*time.Second || age > 12*time.Second {
				t.Errorf("10 minutes without a request, then one: the age is %v, not that of counts that are written lazily", age)
			}
		}
	})
}

// TestIdleOutage: an instance without requests notices from its heartbeats that the store is
// unavailable. It decides the first request by on_outage, and logs the begin and the end of the
// outage once.
func TestIdleOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, away := cutStore()
		store.beat = func(put func()) error {
			if away.Load() {
				return errNetwork
			}
			put()
			return nil
		}
		log := &journal{}
		m := alone(t, store, func(c *syncer.Config) { c.Log = log.logger() })
		limit := ratelimit.NewLimit("per-minute", 10, time.Minute)
		limit.OnOutage = ratelimit.Deny
		policy := policyOf(t, limit)
		pass(10 * time.Second)
		away.Store(true)
		pass(10 * time.Second)
		check.Equal(t, "stalled", m.syncer.Stats().Stalled, true)
		d := m.take(keyOf(0), policy, 1)
		_, fields := d.Headers()
		if !d.Rejected() || !d.Outage || fields != `"per-minute";r=0;t=5` {
			t.Errorf("%v, on outage %t: %s", d.Outcome, d.Outage, fields)
		}
		away.Store(false)
		pass(20 * time.Second)
		check.Equal(t, "stalled", m.syncer.Stats().Stalled, false)
		check.Equal(t, "admitted", m.admits(keyOf(0), policy), true)
		check.Equal(t, "beginnings in the log", log.count("outage: counts cannot be shared"), 1)
		check.Equal(t, "ends in the log", log.count("outage over: counts are shared again"), 1)
	})
}

// TestHeartbeatsAreNoProof: successful heartbeats do not end an outage while exchanges are still
// needed and fail.
func TestHeartbeatsAreNoProof(t *testing.T) {
	for _, tc := range []struct {
		name  string
		known bool // whether the key was known before the store became unavailable
	}{{"a write is not confirmed", true}, {"a key was never read", false}} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, away := cutStore()
				m := alone(t, store, nil)
				policy := policyOf(t, perDay)
				if tc.known {
					m.take(keyOf(0), policy, 1)
					pass(15 * time.Second)
				}
				away.Store(true)
				m.take(keyOf(0), policy, 1)
				pass(15 * time.Second)
				for range 6000 {
					if st := m.syncer.Stats(); !st.Degraded || !st.Stalled {
						t.Fatalf("the store is away: %+v", st)
					}
					pass(100 * time.Millisecond)
				}
			})
		})
	}
}

// TestJustInTime: a call that takes exactly as long as it may, and succeeds, leaves no outage
// behind, no matter if it ends before or after it was found to be late.
func TestJustInTime(t *testing.T) {
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			store := &wrapped{took: 250 * time.Millisecond}
			m := alone(t, store, nil)
			m.take(keyOf(0), policyOf(t, perMinute), 3) // enough to be read at once
			pass(400 * time.Millisecond)
			check.Equal(t, "calls", store.calls.Load(), 1)
			check.Equal(t, "stalled", m.syncer.Stats().Stalled, false)
		})
	}
}

// TestUnreadDocument: a store leaves a document unread without reporting an error. The syncer asks
// for the document seldom, and reports the problem.
func TestUnreadDocument(t *testing.T) {
	for _, tc := range []struct {
		name string
		keys int // the first is not read
	}{{"alone", 1}, {"among others", 2}} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, log := &wrapped{}, &journal{}
				asked := 0
				store.exchange = func(ctx context.Context, items []exchange.Item) ([]exchange.Result, error) {
					results, err := store.Store.Exchange(ctx, items)
					for i := range items {
						if items[i].ID == idOf(0) && items[i].Read {
							asked++
							results[i].Read, results[i].Record = false, nil
						}
					}
					return results, err
				}
				m := alone(t, store, func(c *syncer.Config) { c.Log = log.logger() })
				for range 60 {
					for i := range tc.keys {
						m.take(keyOf(i), policyOf(t, perMinute), 1)
					}
					pass(time.Second)
				}
				if asked > 25 {
					t.Errorf("asked for it %d times in a minute", asked)
				}
				check.Equal(t, "log lines", log.count(`problem="not read`), 1)
				if tc.keys == 1 && m.syncer.Degraded() == nil {
					t.Error("not degraded")
				}
				if tc.keys > 1 {
					check.Equal(t, "stored of the other", stored(t, &store.Store, keyOf(1))+m.counters.Usage(m.now(), keyOf(1))[0].Unflushed, 60)
				}
			})
		})
	}
}

// TestNoOutcome: a store applies writes, but never reports it and returns no error. This makes the
// syncer degraded, although the documents prove that each write was applied.
func TestNoOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &wrapped{}
		store.exchange = func(ctx context.Context, items []exchange.Item) ([]exchange.Result, error) {
			results, err := store.Store.Exchange(ctx, items)
			for i := range items {
				if items[i].Write != nil {
					results[i] = exchange.Result{}
				}
			}
			return results, err
		}
		m := alone(t, store, nil)
		policy := policyOf(t, ratelimit.NewLimit("per-hour", 20, time.Hour))
		for i := range 20 {
			m.take(keyOf(0), policy, 1)
			pass(2 * time.Second)
			if i > 10 && m.syncer.Degraded() == nil {
				t.Errorf("not degraded after %d s", 2*i)
			}
		}
		check.Equal(t, "stored", stored(t, &store.Store, keyOf(0)), 20)
	})
}
