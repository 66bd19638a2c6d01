//go:build !race

package syncer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// cost counts the calls needed to share a number of admitted requests.
type cost struct {
	admitted, writes, reads, commands int64
}

// share offers the keys perSecond requests in all, at instances picked at random, for four minutes.
// It returns the cost of the last three minutes.
func share(t *testing.T, instances, keys int, perSecond float64, limit ratelimit.Limit) (c cost) {
	t.Helper()
	oneProcessor(t)
	synctest.Test(t, func(t *testing.T) {
		store, policy := &wrapped{took: 10 * time.Millisecond}, policyOf(t, limit)
		var all []*member
		for i := range instances {
			all = append(all, alone(t, store, func(c *syncer.Config) { c.Seed = uint64(i + 1) }))
		}
		r := newRand(1)
		total := func() (c cost) {
			for _, m := range all {
				calls, items := m.calls.of(syncer.OpWrite)
				c.commands, c.writes = c.commands+calls, c.writes+items
				calls, items = m.calls.of(syncer.OpRead)
				c.commands, c.reads = c.commands+calls, c.reads+items
			}
			return c
		}
		offer := func(d time.Duration) {
			const step = 10 * time.Millisecond
			due := 0.0
			for range d / step {
				for due += perSecond * step.Seconds(); due >= 1; due-- {
					m := all[r.IntN(instances)]
					if m.take(keyOf(r.IntN(keys)), policy, 1).Outcome == ratelimit.Allowed {
						c.admitted++
					}
				}
				wait(step)
			}
		}
		offer(time.Minute)
		before := total()
		c.admitted = 0
		offer(3 * time.Minute)
		after := total()
		c.writes, c.reads, c.commands = after.writes-before.writes, after.reads-before.reads, after.commands-before.commands
		say("%d instances, %d keys, %.0f requests a second: per admitted request %.3f writes, %.3f reads, %.3f commands",
			instances, keys, perSecond, c.per(c.writes), c.per(c.reads), c.per(c.commands))
		for _, m := range all {
			m.syncer.Kill()
		}
	})
	return c
}

func (c cost) per(n int64) float64 { return float64(n) / float64(c.admitted) }

// TestFarBelow: keys far below their limit cost at most a fifth of a write per request if an
// instance sees one request a second of each key. If the requests of a key are spread over many
// instances, each instance writes its own after ten seconds.
func TestFarBelow(t *testing.T) {
	for _, tc := range []struct {
		instances int
		perSecond float64 // of each key
		most      float64
	}{{1, 1, 0.2}, {3, 3, 0.2}, {10, 10, 0.2}, {3, 1, 0.4}, {10, 1, 0.8}} {
		keys := 100
		if *numbers {
			keys = 100_000 / tc.instances // a hundred thousand counters in all
		}
		c := share(t, tc.instances, keys, float64(keys)*tc.perSecond, ratelimit.NewLimit("per-minute", 6000, time.Minute))
		if c.per(c.writes) > tc.most {
			t.Errorf("%d instances, %v a second: %.3f writes for each admitted request", tc.instances, tc.perSecond, c.per(c.writes))
		}
	}
}

// TestFewCommands: 150 requests a second on three instances cost at most a tenth of a command each.
// An instance reads a key at once if it has not seen it for a while, so many seldom-used keys cost
// more.
func TestFewCommands(t *testing.T) {
	for _, tc := range []struct {
		keys int
		most float64
	}{{1, 0.1}, {10, 0.1}, {150, 0.1}, {3000, 0.35}} {
		c := share(t, 3, tc.keys, 150, ratelimit.NewLimit("per-minute", 100_000, time.Minute))
		if c.per(c.commands) > tc.most {
			t.Errorf("%d keys: %.3f commands for each admitted request", tc.keys, c.per(c.commands))
		}
	}
}

// TestManyKeysInFewCommands: 100,000 dirty keys are written with little more than a hundred
// commands.
func TestManyKeysInFewCommands(t *testing.T) {
	oneProcessor(t)
	synctest.Test(t, func(t *testing.T) {
		const keys = 100_000
		store, policy := &wrapped{took: 10 * time.Millisecond}, policyOf(t, perMinute)
		m := alone(t, store, nil)
		for i := range keys {
			m.take(keyOf(i), policy, 1)
		}
		left, err := m.syncer.Stop(t.Context())
		if err != nil || left != (syncer.Left{}) {
			t.Fatalf("left %+v, %v", left, err)
		}
		say("%d dirty keys flushed in %d commands", keys, store.calls.Load())
		if store.calls.Load() > 110 {
			t.Errorf("%d exchanges", store.calls.Load())
		}
		check.Equal(t, "documents", store.Len(), keys)
	})
}
