package syncer_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
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

// worst returns the most requests in any window.
func (x *exactLog) worst(window time.Duration) (most int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	first := 0
	for i, a := range x.all {
		for a.at.Sub(x.all[first].at) >= window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// fits reports whether one more request would fit now.
func (x *exactLog) fits(limit int64, window time.Duration) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := int64(0)
	for i := len(x.all) - 1; i >= 0 && time.Since(x.all[i].at) < window; i-- {
		n++
	}
	return n < limit
}

// strictLoad is one strict limit, more traffic than it admits, and a cluster.
type strictLoad struct {
	instances int
	limit     int64
	window    time.Duration
	skewed    bool // nine of ten requests come to one instance
	windows   int
	least     float64 // as a fraction of the requests that one exact log admits of the same arrivals
}

// strictResult has the figures of a load.
type strictResult struct {
	share, ofLimit, writes, reads float64
	worst                         int
	median, p99                   time.Duration // of the waits of the admitted
}

func (l strictLoad) run(t *testing.T, seed uint64) (res strictResult) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRand(seed)
		net := newNetwork(5 * time.Millisecond)
		policy := policyOf(t, strictLimit(l.limit, l.window))
		var cluster []*member
		for range l.instances {
			cluster = append(cluster, newMember(t, net, r.Uint64(), 0, nil))
		}
		var ours, exact exactLog
		var requests sync.WaitGroup
		wait(time.Duration(r.Int64N(int64(l.window))))
		began := time.Now()
		every := float64(l.window) / float64(2*l.limit)
		for time.Since(began) < time.Duration(l.windows)*l.window {
			wait(time.Duration(r.ExpFloat64() * every))
			m := cluster[r.IntN(len(cluster))]
			if l.skewed && r.IntN(10) > 0 {
				m = cluster[0]
			}
			if exact.fits(l.limit, l.window) {
				exact.add(0, l.limit)
			}
			requests.Go(func() {
				if d, waited := m.counters.Await(t.Context(), m.now(), keyOf(0), policy, 1); !d.Rejected() {
					ours.add(waited, l.limit)
				}
			})
		}
		requests.Wait()
		for _, m := range cluster {
			_, writes := m.calls.of(syncer.OpWrite)
			_, reads := m.calls.of(syncer.OpRead)
			res.writes, res.reads = res.writes+float64(writes), res.reads+float64(reads)
			m.syncer.Kill()
		}
		admitted := float64(len(ours.all))
		res.share, res.writes, res.reads = admitted/float64(len(exact.all)), res.writes/admitted, res.reads/admitted
		res.ofLimit = admitted / float64(l.limit*int64(l.windows))
		res.worst = ours.worst(l.window)
		slices.Sort(ours.waits)
		res.median, res.p99 = ours.waits[len(ours.waits)/2], ours.waits[len(ours.waits)*99/100]
	})
	return res
}

// TestStrictLoad checks how many requests a strict limit admits of an offer of twice the limit.
func TestStrictLoad(t *testing.T) {
	for _, l := range sample(4, strictLoads()) {
		t.Run(fmt.Sprintf("%d per %v, %d instances, skewed %v", l.limit, l.window, l.instances, l.skewed), func(t *testing.T) {
			res := l.run(t, 1)
			say("%3d per %-5v %2d instances, skewed %-5v: %.3f of an exact log, %.3f of the limit; per admitted %.2f writes, %.2f reads; waited %v, p99 %v",
				l.limit, l.window, l.instances, l.skewed, res.share, res.ofLimit, res.writes, res.reads, res.median, res.p99)
			if int64(res.worst) > l.limit {
				t.Errorf("%d were admitted in some window", res.worst)
			}
			if res.share < l.least {
				t.Errorf("%.3f of what an exact log admits, want %v", res.share, l.least)
			}
		})
	}
}

// strictLoads returns every limit with every number of instances. Requests come to all instances
// equally, or mostly to one.
func strictLoads() (all []strictLoad) {
	for _, l := range []strictLoad{
		{limit: 10, window: 10 * time.Minute, windows: 20, least: 0.97},
		{limit: 10, window: time.Minute, windows: 50, least: 0.97},
		{limit: 100, window: time.Minute, windows: 30, least: 0.97},
		{limit: 4, window: time.Second, windows: 120, least: 0.9},
	} {
		for _, l.instances = range []int{1, 3, 10} {
			if l.skewed = false; l.instances > 1 {
				all = append(all, l)
				l.skewed = true
			}
			all = append(all, l)
		}
	}
	return all
}

// await sends a request that may wait, and returns the decision and how long it took.
func (m *member) await(t *testing.T, key int, policy *ratelimit.Effective) (ratelimit.Decision, time.Duration) {
	t.Helper()
	return m.counters.Await(t.Context(), m.now(), keyOf(key), policy, 1)
}

// TestStrictWithoutAClock: a store of one process has no clock and does not need one.
func TestStrictWithoutAClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &wrapped{now: func() (time.Time, error) { return time.Time{}, syncer.ErrNoClock }}
		m := alone(t, store, nil)
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
		store.exchange = func(ctx context.Context, items []syncer.Item) ([]syncer.Result, error) {
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
