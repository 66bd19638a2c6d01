//go:build !race

package syncer_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate/cluster"
)

// TestSimulatedCluster: `oauth-server simulate cluster` and the simulations of these tests come to the same. So
// what the one forgives the other does: coroutines and goroutines, its network and that of network_test.go,
// its judge and that of numbers_test.go. The race detector would see what it sees in the other tests, and take minutes.
func TestSimulatedCluster(t *testing.T) {
	for _, tc := range []struct {
		load
		mean, worst, cost float64 // by how much they may differ; the cost in parts of itself
	}{
		{load{name: "10 instances, 50 per s over 60 s", instances: 10, limit: 3000, window: time.Minute, offered: 500, windows: 3}, 0.004, 0.01, 0.15},
		{load{name: "the same, every second", instances: 10, limit: 3000, window: time.Minute, offered: 500, windows: 3, plain: true}, 0.03, 0.06, 0},
		{load{name: "3 instances, 1000 per s", instances: 3, limit: 1000, window: time.Second, offered: 2000, windows: 20}, 0.005, 0.02, 0.15},
		{load{name: "16 instances, 100 per s over 10 s", instances: 16, limit: 1000, window: 10 * time.Second, offered: 300, windows: 6}, 0.005, 0.015, 0.15},
		{load{name: "16 instances, clocks 2 s off", instances: 16, limit: 1000, window: 10 * time.Second, offered: 300, windows: 6, skew: 2 * time.Second}, 0.005, 0.015, 0.15},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tests := tc.run(t, 1)
			begin := time.Unix(1_800_000_000, 0).Truncate(tc.window)
			duration := time.Duration(tc.windows+1) * tc.window
			command, err := cluster.Run(t.Context(), cluster.Config{
				Instances: tc.instances, Limit: ratelimit.NewLimit("limit", tc.limit, tc.window),
				Flush: cluster.Flush{Every: time.Second, Plain: tc.plain}, Network: cluster.Network{Latency: 5 * time.Millisecond},
				Balance: cluster.Random, Skew: tc.skew, Duration: duration, Seed: 2,
			}, &cluster.Poisson{Begin: begin, Duration: duration, Rate: tc.offered, Users: 1, Seed: 2})
			check.OK(t, err)
			near := func(what string, a, b, most float64) {
				if d := a - b; d > most || d < -most {
					t.Errorf("%s: %.4f here, %.4f of the command", what, a, b)
				}
			}
			say("%s: %s\n  of the command %+v, %+v, per admitted %.2f writes, %.2f reads", tc.name, &tests, command.Windows, command.Over,
				command.PerAdmitted(command.Cost.Writes), command.PerAdmitted(command.Cost.Reads))
			w := command.Windows
			near("mean", tests.mean, w.Mean, tc.mean)
			near("worst window", max(tests.worst, tests.first), max(w.Worst, w.First), tc.worst)
			near("false denials", float64(tests.falseDenials), float64(command.Over.FalseDenials), float64(tests.offered)/1000)
			if tc.cost > 0 {
				writes, reads := float64(tests.writes)/float64(tests.admitted), float64(tests.reads)/float64(tests.admitted)
				near("writes", writes, command.PerAdmitted(command.Cost.Writes), tc.cost*writes)
				near("reads", reads, command.PerAdmitted(command.Cost.Reads), tc.cost*reads)
			}
		})
	}
}
