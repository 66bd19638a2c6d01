//go:build !race

package syncer_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/syncer"
)

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
	oneProcessor(t)
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
	for _, l := range strictLoads() {
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
