package syncer_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/syncer"
)

// strictLimit makes a strict limit.
func strictLimit(requests int64, window time.Duration) ratelimit.Limit {
	l := ratelimit.NewLimit("strict", requests, window)
	l.MakeStrict()
	return l
}

// exactLog records when each request was admitted, by real time.
type exactLog struct {
	mu    sync.Mutex
	since time.Time // earlier ones do not count
	all   []admission
	waits []time.Duration
}

// admission is when a request was admitted, and the highest limit while it was decided.
type admission struct {
	at    time.Time
	limit int64
}

func (x *exactLog) add(waited time.Duration, limit int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.waits = append(x.waits, waited)
	if now := time.Now(); !now.Before(x.since) {
		x.all = append(x.all, admission{now, limit})
	}
}

// remove takes out an admitted request that was given back.
func (x *exactLog) remove(a admission) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if i := slices.Index(x.all, a); i >= 0 {
		x.all = slices.Delete(x.all, i, i+1)
	}
}

// forget takes out all requests before a time that may be later than now.
func (x *exactLog) forget(before time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.all, x.since = nil, before
}

// excess looks for a window with more requests than the highest limit that applied to any of them.
// It returns the number of requests and the limit for the first such window, or 0.
func (x *exactLog) excess(window time.Duration) (n, limit int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, last := range x.all {
		n, limit = 0, 0
		for j := i; j >= 0 && last.at.Sub(x.all[j].at) < window; j-- {
			if n, limit = n+1, max(limit, x.all[j].limit); n > limit {
				return n, limit
			}
		}
	}
	return 0, 0
}

// await sends a request that may wait, and returns the decision and how long it took.
func (m *member) await(t *testing.T, key int, policy *ratelimit.Effective) (ratelimit.Decision, time.Duration) {
	t.Helper()
	return m.counters.Await(t.Context(), m.now(), keyOf(key), policy, 1)
}

// TestStrictInOneProcess: the only process of a store needs no clock of the store.
func TestStrictInOneProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := aloneOn(t, &wrapped{now: func() (time.Time, error) { return time.Time{}, errServer }}, nil, nil)
		policy := policyOf(t, strictLimit(10, time.Minute))
		for range 10 {
			d, _ := m.await(t, 0, policy)
			check.Equal(t, "outcome", d.Outcome, ratelimit.Allowed)
		}
		d, _ := m.await(t, 0, policy)
		check.Equal(t, "one more", d.Outcome, ratelimit.Denied)
	})
}

// TestStopGivesPermitsBack: Stop gives permits back, and no log line reports unshared requests or a
// negative number of them.
func TestStopGivesPermitsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, log := &wrapped{}, &journal{}
		var fail atomic.Bool
		store.exchange = func(ctx context.Context, items []exchange.Item) ([]exchange.Result, error) {
			if fail.Load() {
				return nil, errServer
			}
			return store.Store.Exchange(ctx, items)
		}
		m := alone(t, store, func(c *syncer.Config) { c.Log = log.logger() })
		policy := policyOf(t, strictLimit(10, 10*time.Minute))
		ctx, cancel := context.WithCancel(t.Context())
		for range 4 { // no request waits for the permits that these ask for
			m.take(keyOf(0), policy, 1)
		}
		pass(20 * time.Millisecond)
		cancel()
		check.Equal(t, "permits taken", stored(t, &store.Store, keyOf(0)) >= 4, true)
		_, _ = m.counters.Await(ctx, m.now(), keyOf(0), policy, 1)
		fail.Store(true)
		pass(20 * time.Second) // the permits are to be given back in this time
		check.Equal(t, "lines with fewer than no requests", log.count("requests=-"), 0)
		fail.Store(false)
		left, err := m.syncer.Stop(t.Context())
		check.Equal(t, "left", left, syncer.Left{})
		check.Equal(t, "error", err, nil)
		check.Equal(t, "counted of permits that were not used", stored(t, &store.Store, keyOf(0)), 1)
	})
}
