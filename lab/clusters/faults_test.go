package clusters

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// five returns a cluster of five instances with a limit of 300 a minute for each user.
func five(change func(*config)) config {
	cfg := config{
		instances: 5, limit: ratelimit.NewLimit("limit", 300, time.Minute), flush: second,
		network: network{latency: 5 * time.Millisecond, jitter: 2 * time.Millisecond}, duration: time.Minute, seed: 1,
	}
	change(&cfg)
	return cfg
}

// TestWallClocks: wall clocks are wrong as configured, and the time used for counting is right.
func TestWallClocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := start(t, five(func(c *config) {
			c.instances, c.skew = 20, 10*time.Second
			c.steps = []step{{at: 5 * time.Second, instance: 3, by: time.Hour}, {at: 50 * time.Second, instance: 4, by: time.Hour}}
		}))
		defer c.settle()
		c.runUntil(begin.Add(20 * time.Second))
		ahead := 0
		for n, i := range c.instances {
			off := time.Duration(i.skew.Load())
			if (off > 59*time.Minute) != (n == 3) || n != 3 && off.Abs() > 10*time.Second {
				t.Errorf("the wall clock of instance %d is wrong by %v", n, off)
			}
			if off > 0 {
				ahead++
			}
			if now := time.Until(i.clock.Now()); now.Abs() > 100*time.Millisecond {
				t.Errorf("process time of instance %d is wrong by %v", n, now)
			}
		}
		if ahead < 4 || ahead > 16 {
			t.Errorf("%d of 20 clocks are ahead", ahead)
		}
	})
}

// TestOutage: no message arrives during an outage, not even one that was under way when it began.
func TestOutage(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		sent                 time.Duration // each message takes 10 ms, the outage is from 100 ms to 200 ms
		carriedOut, answered bool
	}{
		{75 * time.Millisecond, true, true},
		{85 * time.Millisecond, true, false},
		{95 * time.Millisecond, false, false},
		{150 * time.Millisecond, false, false},
		{200 * time.Millisecond, true, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			sleepUntil(begin.Add(tc.sent))
			db := newDatabase(t.Context(), network{latency: 10 * time.Millisecond, down: []outage{{100 * time.Millisecond, 200 * time.Millisecond}}})
			p := &port{db: db, rand: rand.New(rand.NewPCG(1, 1))}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			carriedOut := false
			_, err := send(ctx, p, func(context.Context) (int, error) { carriedOut = true; return 0, nil })
			check.Equal(t, tc.sent.String()+": carried out", carriedOut, tc.carriedOut)
			check.Equal(t, tc.sent.String()+": answered", err == nil, tc.answered)
		})
	}
}

// TestPlainConflict: if two plain instances write at once, the one with the conflict writes again immediately, not at
// the next interval.
func TestPlainConflict(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := five(func(c *config) { c.flush, c.network = plainly, network{latency: 10 * time.Millisecond} })
		policy, db, r := policyOf(t, cfg.limit, 100), newDatabase(t.Context(), cfg.network), rand.New(rand.NewPCG(1, 1))
		instances := []*instance{newInstance(db, &cfg, r), newInstance(db, &cfg, r)}
		for _, i := range instances {
			i.plain.first = 0
			i.start(t.Context())
		}
		k := ratelimit.Key{ClientID: "client"}
		for n, began := 0, time.Now(); n < 5; n++ {
			second := began.Add(time.Duration(n) * time.Second)
			sleepUntil(second.Add(500 * time.Millisecond))
			for _, i := range instances {
				i.take(k, policy)
			}
			sleepUntil(second.Add(1100 * time.Millisecond))
			check.Equal(t, "counts in the store", db.applied.Load(), int64(2*(n+1)))
		}
		a, b := instances[0].cost(), instances[1].cost()
		check.Equal(t, "there are conflicts", a.conflicts+b.conflicts > 1, true)
	})
}
