package cluster

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate/simtime"
)

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
		loop := simtime.New(noon)
		net := newNetwork(loop, noon, Network{
			Latency: 10 * time.Millisecond, Down: []Outage{{From: 100 * time.Millisecond, To: 200 * time.Millisecond}},
		})
		p := &port{net: net, rand: rand.New(rand.NewPCG(1, 1))}
		carriedOut, answered := false, false
		loop.AfterFunc(tc.sent, func() {
			p.send(t.Context(), func(context.Context) { carriedOut = true }, func() { answered = true })
		})
		loop.RunUntil(noon.Add(time.Second))
		check.Equal(t, tc.sent.String()+": carried out", carriedOut, tc.carriedOut)
		check.Equal(t, tc.sent.String()+": answered", answered, tc.answered)
	}
}

// TestPlainConflict: if two plain instances write at once, the one with the conflict writes again
// immediately, not at the next interval.
func TestPlainConflict(t *testing.T) {
	t.Parallel()
	loop := simtime.New(noon)
	defer loop.Close()
	cfg := &Config{
		Limit: ratelimit.NewLimit("limit", 100, time.Minute), Flush: Flush{Every: time.Second, Plain: true},
		Network: Network{Latency: 10 * time.Millisecond},
	}
	policy, err := cfg.policy(100)
	check.OK(t, err)
	net, r := newNetwork(loop, noon, cfg.Network), rand.New(rand.NewPCG(1, 1))
	instances, running := []*instance{newInstance(net, 1, cfg, r), newInstance(net, 2, cfg, r)}, loop.NewTasks()
	for _, i := range instances {
		i.plain.first = 0
		i.start(t.Context(), running)
	}
	k := ratelimit.Key{ClientID: "client"}
	for n := range 5 {
		second := time.Duration(n) * time.Second
		loop.RunUntil(noon.Add(second + 500*time.Millisecond))
		for _, i := range instances {
			i.take(k, policy)
		}
		loop.RunUntil(noon.Add(second + 1100*time.Millisecond))
		check.Equal(t, "counts in the store", net.applied, int64(2*(n+1)))
	}
	check.Equal(t, "there are conflicts", instances[0].cost().Conflicts+instances[1].cost().Conflicts > 1, true)
}
