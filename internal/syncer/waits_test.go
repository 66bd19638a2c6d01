//go:build !race

package syncer_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

// waitLoad is one limit, twice as much traffic as it admits, and a cluster. Requests over the limit
// wait in a queue.
type waitLoad struct {
	limit     int64
	window    time.Duration
	frames    int
	longest   time.Duration // max_wait
	places    int           // max_waiting
	instances int
	skewed    bool // nine of ten requests come to one instance
	faults    faults
	windows   int // how long, after the first
}

// waitResult has the figures of a load.
type waitResult struct {
	ofLimit, worst float64 // admitted requests divided by the limit: the mean of the windows after the first, and the highest
	over           int     // admitted although one counter for all instances would have denied them at that moment
	admitted       int
	waited, gaveUp int // requests admitted after a wait, and requests denied after a wait
	latest         time.Duration
}

// run offers the load in simulated time, with Poisson arrivals, 5 ms to the database and 5 ms back.
// A seed gives the same arrivals with and without waiting.
func (l waitLoad) run(t *testing.T, seed uint64, waits bool) (res waitResult) {
	t.Helper()
	oneProcessor(t)
	synctest.Test(t, func(t *testing.T) {
		r := newRand(seed)
		net := newNetwork(5 * time.Millisecond)
		limit, exactly := ratelimit.NewLimit("limit", l.limit, l.window), ratelimit.NewLimit("limit", ratelimit.MaxRequests, l.window)
		limit.Frames, exactly.Frames = l.frames, l.frames
		longest := l.longest
		if !waits {
			longest = 0
		}
		policy := policyWaiting(t, longest, l.places, limit)
		one := oneCounter{counters: counting.NewCounters(1), policy: policyOf(t, exactly), limit: l.limit}
		var cluster []*member
		for range l.instances {
			cluster = append(cluster, newMember(t, net, r.Uint64(), 0, nil))
		}
		wait(time.Until(time.Now().Truncate(l.window).Add(2 * l.window)))
		net.become(l.faults, false)
		began := time.Now()
		var requests sync.WaitGroup
		for time.Since(began) < time.Duration(l.windows+1)*l.window {
			wait(time.Duration(r.ExpFloat64() * float64(l.window) / float64(2*l.limit)))
			m := cluster[r.IntN(len(cluster))]
			if l.skewed && r.IntN(10) > 0 {
				m = cluster[0]
			}
			requests.Go(func() {
				came := time.Now()
				turn := m.lines.Take(t.Context(), keyOf(0), func() *ratelimit.Effective { return policy })
				one.note(turn.Decision, came)
			})
		}
		requests.Wait()
		for _, m := range cluster {
			check.Equal(t, "requests in lines", m.lines.Waiting(), 0)
			m.syncer.Kill()
		}
		res = one.result(began, l.window, l.windows+1)
	})
	return res
}

// oneCounter counts the requests of all instances at the moment of their admission.
type oneCounter struct {
	mu       sync.Mutex
	counters *counting.Counters
	policy   *ratelimit.Effective
	limit    int64
	times    []time.Time // of admissions
	res      waitResult
}

func (o *oneCounter) note(d ratelimit.Decision, came time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	o.res.latest = max(o.res.latest, now.Sub(came))
	switch {
	case !d.Rejected():
		if !fits(o.counters, o.limit) {
			o.res.over++
		}
		o.counters.Take(now, keyOf(0), o.policy, 1)
		o.times = append(o.times, now)
		if d.Outcome == ratelimit.Delayed {
			o.res.waited++
		}
	case now.After(came):
		o.res.gaveUp++
	}
}

// result sums up the windows of a load that began at began.
func (o *oneCounter) result(began time.Time, window time.Duration, windows int) waitResult {
	res, per := o.res, make([]float64, windows)
	for _, at := range o.times {
		if w := int(at.Sub(began) / window); w < windows {
			per[w] += 1 / float64(o.limit)
		}
	}
	for _, share := range per[1:] {
		res.ofLimit += share / float64(windows-1)
	}
	res.admitted, res.worst = len(o.times), slices.Max(per)
	return res
}

// TestWaitLoad: requests that wait at several instances are admitted at the same rate as without
// waiting, and decided within max_wait. To print the figures: go test ./internal/syncer -run
// TestWaitLoad -numbers -v
func TestWaitLoad(t *testing.T) {
	var loads []waitLoad
	for _, limit := range []waitLoad{
		{limit: 10, window: time.Second, frames: 1, longest: time.Second, places: 10, windows: 60},
		{limit: 100, window: 10 * time.Second, frames: 10, longest: 2 * time.Second, places: 20, windows: 12},
		{limit: 3000, window: time.Minute, frames: 1, longest: 2 * time.Second, places: 50, windows: 2},
	} {
		for _, instances := range []int{1, 3, 10} {
			for _, skewed := range []bool{false, true} {
				for _, f := range []faults{{}, {loseRequest: 5, loseReply: 5, delay: 5, unsure: 2}} {
					if l := limit; !skewed || instances > 1 {
						l.instances, l.skewed, l.faults = instances, skewed, f
						loads = append(loads, l)
					}
				}
			}
		}
	}
	for _, l := range loads {
		t.Run(fmt.Sprintf("%d per %v, %d instances, skewed %v, faults %v", l.limit, l.window, l.instances, l.skewed, l.faults != faults{}), func(t *testing.T) {
			with, without := l.run(t, 1, true), l.run(t, 1, false)
			say("%4d per %-4v %2d instances, skewed %-5v, faults %-5v: %.3f of the limit (worst %.3f, over %.2f %%), %.0f %% waited, %.1f %% in vain, longest %v; without max_wait %.3f (worst %.3f, over %.2f %%)",
				l.limit, l.window, l.instances, l.skewed, l.faults != faults{}, with.ofLimit, with.worst, with.overPercent(),
				100*float64(with.waited)/float64(with.admitted), 100*float64(with.gaveUp)/float64(with.admitted), with.latest,
				without.ofLimit, without.worst, without.overPercent())
			if with.latest > slowest(l.longest) {
				t.Errorf("decided after %v, max_wait is %v", with.latest, l.longest)
			}
			if most := without.ofLimit + 0.05; with.ofLimit > most && l.faults == (faults{}) {
				t.Errorf("%.3f of the limit, %.3f if nobody waits", with.ofLimit, without.ofLimit)
			}
			if with.waited == 0 {
				t.Error("nobody waited")
			}
		})
	}
}

func (r *waitResult) overPercent() float64 { return 100 * float64(r.over) / float64(r.admitted) }
