//go:build !race

package syncer_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate/cluster"
)

// simulatedSeeds is how many runs of either simulation are compared. The mean of the windows varies
// between runs by 0.0019 of the limit (standard deviation), so two single runs differ by more than
// 0.005 in one case of fifteen.
const simulatedSeeds = 6

// TestSimulatedCluster: `oauth-server simulate cluster` and the simulations of these tests give the
// same results, in the mean of several runs. So a fault that only one of them can miss would show.
// They differ in coroutines and goroutines, in the network (compare network_test.go), and in how
// they check requests (compare numbers_test.go). The race detector would find nothing beyond the
// other tests, and take minutes.
func TestSimulatedCluster(t *testing.T) {
	for _, tc := range []struct {
		load
		mean, worst, cost float64 // how much they may differ; the cost as a fraction of itself
	}{
		{load{name: "10 instances, 50 per s over 60 s", instances: 10, limit: 3000, window: time.Minute, offered: 500, windows: 3}, 0.004, 0.01, 0.1},
		{load{name: "the same, every second", instances: 10, limit: 3000, window: time.Minute, offered: 500, windows: 3, plain: true}, 0.03, 0.06, 0},
		{load{name: "3 instances, 1000 per s", instances: 3, limit: 1000, window: time.Second, offered: 2000, windows: 20}, 0.005, 0.015, 0.1},
		{load{name: "16 instances, 100 per s over 10 s", instances: 16, limit: 1000, window: 10 * time.Second, offered: 300, windows: 6}, 0.005, 0.012, 0.1},
		{load{name: "16 instances, clocks 2 s off", instances: 16, limit: 1000, window: 10 * time.Second, offered: 300, windows: 6, skew: 2 * time.Second}, 0.005, 0.012, 0.1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var here, command simulatedFigures
			for seed := range uint64(simulatedSeeds) {
				tests := tc.run(t, 1+seed)
				here.add(simulatedFigures{
					mean: tests.mean, worst: max(tests.worst, tests.first), falseDenials: float64(tests.falseDenials) / float64(tests.offered),
					writes: float64(tests.writes) / float64(tests.admitted), reads: float64(tests.reads) / float64(tests.admitted),
				})
				command.add(tc.command(t, 101+seed))
			}
			say("%s, here and of the command:\n  %+v\n  %+v", tc.name, here, command)
			near := func(what string, a, b, most float64) {
				if d := a - b; d > most || d < -most {
					t.Errorf("%s: %.4f here, %.4f of the command", what, a, b)
				}
			}
			near("mean", here.mean, command.mean, tc.mean)
			near("worst window", here.worst, command.worst, tc.worst)
			near("false denials", here.falseDenials, command.falseDenials, 0.001)
			if tc.cost > 0 {
				near("writes", here.writes, command.writes, tc.cost*here.writes)
				near("reads", here.reads, command.reads, tc.cost*here.reads)
			}
		})
	}
}

// simulatedFigures are the figures that both simulations give: windows in parts of the limit, false
// denials in parts of the offered requests, writes and reads per admitted request.
type simulatedFigures struct{ mean, worst, falseDenials, writes, reads float64 }

// add adds the figures of one of the runs to their mean.
func (f *simulatedFigures) add(run simulatedFigures) {
	f.mean += run.mean / simulatedSeeds
	f.worst += run.worst / simulatedSeeds
	f.falseDenials += run.falseDenials / simulatedSeeds
	f.writes += run.writes / simulatedSeeds
	f.reads += run.reads / simulatedSeeds
}

// command simulates the load as `oauth-server simulate cluster` does.
func (l load) command(t *testing.T, seed uint64) simulatedFigures {
	t.Helper()
	begin := time.Unix(1_800_000_000, 0).Truncate(l.window)
	duration := time.Duration(l.windows+1) * l.window
	r, err := cluster.Run(t.Context(), cluster.Config{
		Instances: l.instances, Limit: ratelimit.NewLimit("limit", l.limit, l.window),
		Flush: cluster.Flush{Every: time.Second, Plain: l.plain}, Network: cluster.Network{Latency: 5 * time.Millisecond},
		Balance: cluster.Random, Skew: l.skew, Duration: duration, Seed: seed,
	}, &cluster.Poisson{Begin: begin, Duration: duration, Rate: l.offered, Users: 1, Seed: seed})
	check.OK(t, err)
	return simulatedFigures{
		mean: r.Windows.Mean, worst: max(r.Windows.Worst, r.Windows.First),
		falseDenials: float64(r.Over.FalseDenials) / (l.offered * duration.Seconds()),
		writes:       r.PerAdmitted(r.Cost.Writes), reads: r.PerAdmitted(r.Cost.Reads),
	}
}
