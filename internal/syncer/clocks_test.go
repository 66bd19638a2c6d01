package syncer_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
	"oauth-server/internal/syncer/clock"
)

// trial is a cluster that gets several times its limit in requests, minute after minute. Halfway
// through, a fault happens.
type trial struct {
	t       *testing.T
	net     *network
	cluster []*member
	limits  []int64 // one limit per key, per minute
	rand    *rand.Rand
	minutes map[int]map[int64]int64 // admitted, by key and minute
}

func newTrial(t *testing.T, instances int, limits ...int64) *trial {
	t.Helper()
	tr := &trial{t: t, net: newNetwork(2 * time.Millisecond), limits: limits, rand: newRand(1), minutes: map[int]map[int64]int64{}}
	for range instances {
		tr.cluster = append(tr.cluster, newMember(t, tr.net, tr.rand.Uint64(), 0, nil))
	}
	wait(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
	return tr
}

// run offers limit/5 requests a second for each key, at instances picked at random.
func (tr *trial) run(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		for i, limit := range tr.limits {
			policy := policyOf(tr.t, ratelimit.NewLimit("limit", limit, time.Minute))
			for range limit / 20 {
				m := tr.cluster[tr.rand.IntN(len(tr.cluster))]
				if dec := m.take(keyOf(i), policy, 1); dec.Outcome == ratelimit.Allowed {
					if tr.minutes[i] == nil {
						tr.minutes[i] = map[int64]int64{}
					}
					tr.minutes[i][time.Now().Unix()/60]++
				}
			}
		}
		wait(250 * time.Millisecond)
	}
}

// worst returns the most requests of a key that were admitted in one minute.
func (tr *trial) worst(key int) (most int64) {
	for _, n := range tr.minutes[key] {
		most = max(most, n)
	}
	return most
}

// check reports minutes that admitted more than limits times the limit, and live frames with counts
// that fell.
func (tr *trial) check(what string, limits int64) {
	tr.t.Helper()
	line := what + ": worst minute"
	for i, limit := range tr.limits {
		line += fmt.Sprintf(" %d of %d", tr.worst(i), limit)
		if tr.worst(i) > limits*limit+int64(len(tr.cluster)) {
			tr.t.Errorf("%s: %d of %d were admitted in one minute", what, tr.worst(i), limit)
		}
	}
	say("%s", line)
	if len(tr.net.fell) > 0 {
		tr.t.Errorf("%s: live frames have fallen: %v", what, tr.net.fell)
	}
}

// join starts another instance. Its wall clock is wrong by skew, and it reads the store's clock
// wrong by lie.
func (tr *trial) join(skew, lie time.Duration) *member {
	tr.t.Helper()
	p := newPort(tr.net, 7)
	tr.net.lie(&member{port: p}, lie)
	m := startMember(tr.t, p, 7, skew, nil)
	tr.cluster = append(tr.cluster, m)
	return m
}

// TestSlowNewcomerAsksTheOthers: the instance reads the times of the others before it reads the
// store's clock, slowly. It adds the time that passes in between.
func TestSlowNewcomerAsksTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTrial(t, 3, 60, 20)
		p := newPort(tr.net, 7)
		p.far = 200 * time.Millisecond
		tr.net.lie(&member{port: p}, 5*time.Minute)
		m := startMember(t, p, 7, 0, nil)
		if ahead := time.Until(m.now()); ahead.Abs() > 100*time.Millisecond {
			t.Errorf("it begins %v ahead", ahead)
		}
		check.Equal(t, "clock that is alone", m.syncer.Stats().Clock.Alone, clock.Store)
	})
}

// TestClock: process time starts at the store's time and follows it.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, store := &journal{}, &wrapped{}
		store.Clock = func() time.Time { return time.Now().Add(7 * time.Second) }
		store.now = func() (time.Time, error) { return time.Time{}, errNetwork }
		m := alone(t, store, func(c *syncer.Config) { c.Log = log.logger() })
		check.Equal(t, "ahead before the store could be read", time.Until(m.now()), 0)
		pass(5 * time.Second)
		check.Equal(t, "ahead", time.Until(m.now()).Round(time.Millisecond), 7*time.Second)
		check.Equal(t, "degraded", m.syncer.Stats().Degraded, false)

		m.take(keyOf(0), policyOf(t, ratelimit.NewLimit("per-second", 5, time.Second)), 1)
		took := m.now().Unix()
		pass(time.Second)
		check.Equal(t, "frame", store.Documents()[0].Frames[0].Name, took)
		check.Equal(t, "log lines", log.count("process time moved forward"), 1)
	})
}

// TestSlowSample: a clock sample ages by the time that a failed sample after it took.
func TestSlowSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, samples := &wrapped{}, 0
		store.now = func() (time.Time, error) {
			if samples++; samples == 2 {
				wait(3 * time.Second)
				return time.Time{}, errNetwork
			}
			return time.Now(), nil
		}
		m := alone(t, store, nil)
		check.Equal(t, "samples", samples, 2)
		check.Equal(t, "ahead", time.Until(m.now()), 0)
	})
}

// TestInstances: every instance knows how many are alive; one that leaves is gone at once, and one
// that dies after a while.
func TestInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &wrapped{}
		var all []*member
		for range 3 {
			all = append(all, alone(t, store, func(c *syncer.Config) { c.Report = func() []byte { return []byte("report") } }))
		}
		pass(5 * time.Second)
		for _, m := range all {
			check.Equal(t, "instances", m.syncer.Stats().Instances, 3)
		}
		check.Equal(t, "report", store.report.Load(), any("report"))
		all[0].stop(t)
		pass(5 * time.Second)
		check.Equal(t, "instances after one has left", all[2].syncer.Stats().Instances, 2)
		all[1].syncer.Kill()
		pass(20 * time.Second)
		check.Equal(t, "instances after one has died", all[2].syncer.Stats().Instances, 1)
	})
}

// TestInstancesThatStartTogether know each other soon enough to share a busy key: instances that
// expect fewer others than there are write their counts too late.
func TestInstancesThatStartTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, random, cluster := newNetwork(2*time.Millisecond), newRand(1), make([]*member, 10)
		var starting sync.WaitGroup
		for i := range cluster {
			seed := random.Uint64()
			starting.Go(func() { cluster[i] = newMember(t, net, seed, 0, nil) })
		}
		starting.Wait()
		policy, admitted := policyOf(t, ratelimit.NewLimit("per-hour", 1000, time.Hour)), 0
		for range 2000 { // the limit is reached after two seconds
			if cluster[random.IntN(len(cluster))].admits(keyOf(0), policy) {
				admitted++
			}
			wait(2 * time.Millisecond)
		}
		if admitted > 1030 {
			t.Errorf("%d of 1000 requests were admitted", admitted)
		}
	})
}

// TestPanicsOfAHeartbeatAreSurvived: panics in heartbeats are counted, the first of equal ones is
// logged, and the next heartbeat comes on time.
func TestPanicsOfAHeartbeatAreSurvived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, store, beats := &journal{}, &wrapped{}, 0
		store.beat = func(put func()) error {
			if beats++; beats > 1 && beats <= 4 { // the first is that of Start
				panic("boom")
			}
			put()
			return nil
		}
		m := alone(t, store, func(c *syncer.Config) { c.Log = log.logger() })
		pass(30 * time.Second)
		check.Equal(t, "panics", m.syncer.Stats().Panics, 3)
		check.Equal(t, "log lines", log.count("loop=heartbeat panic=boom"), 1)
		if beats < 7 {
			t.Errorf("%d heartbeats in 30 s, want one each 4 s", beats)
		}
	})
}
