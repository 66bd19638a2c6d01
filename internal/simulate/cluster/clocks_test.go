package cluster

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// TestWallClocks: wall clocks are wrong as configured, and the time used for counting is right.
func TestWallClocks(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c, err := start(&Config{
		Instances: 20, Limit: ratelimit.NewLimit("limit", 100, time.Minute), Flush: Flush{Every: time.Second}, Balance: Random,
		Network: Network{Latency: time.Millisecond}, Skew: 10 * time.Second, Duration: time.Minute, Seed: 1,
		Steps: []Step{{At: 5 * time.Second, Instance: 3, By: time.Hour}, {At: 50 * time.Second, Instance: 4, By: time.Hour}},
	}, begin)
	check.OK(t, err)
	defer c.settle()
	c.runUntil(begin.Add(20 * time.Second))
	ahead, behind := 0, 0
	for n, i := range c.instances {
		off := i.wall().Sub(c.loop.Now())
		if (off > 59*time.Minute) != (n == 3) || n != 3 && off.Abs() > 10*time.Second {
			t.Errorf("the wall clock of instance %d is wrong by %v", n, off)
		}
		if off > 0 {
			ahead++
		} else {
			behind++
		}
		if now := i.clock.Now().Sub(c.loop.Now()); now.Abs() > 100*time.Millisecond {
			t.Errorf("process time of instance %d is wrong by %v", n, now)
		}
	}
	if ahead < 4 || behind < 4 {
		t.Errorf("%d clocks are ahead, %d behind", ahead, behind)
	}
}
