package accuracy

import (
	"time"

	"oauth-server/lab/algorithm"
	"oauth-server/lab/workload"
)

// section is a study. Its tables are a section of the results.
type section struct {
	name string
	study
}

var (
	loads  = []float64{0.6, 0.65, 0.7, 0.8, 0.85, 0.9, 0.95, 1, 1.05, 1.1, 1.2, 1.3, 1.4}
	spikes = study{
		traffic: workload.Spikes, limit: algorithm.Limit{Requests: 20, Window: time.Minute}, number: 100, duration: 2 * time.Hour,
		per: 10 * time.Second, tables: []string{flow},
	}
)

// loaded is Poisson traffic at several loads, with that limit per minute.
func loaded(requests int64, duration time.Duration) study {
	return study{
		traffic: workload.Poisson, limit: algorithm.Limit{Requests: requests, Window: time.Minute}, duration: duration,
		algorithms: frames(1, 2), tables: []string{estimates}, rates: loads,
	}
}

// frames returns the names of sliding windows with so many frames.
func frames(numbers ...int) (names []string) {
	for _, n := range numbers {
		names = append(names, algorithm.SlidingFrames(n))
	}
	return names
}

var sections = []section{
	{name: "edge", study: study{traffic: workload.Edge, tables: []string{decisions}}},
	{name: "poisson", study: study{traffic: workload.Poisson, tables: []string{decisions, estimates}}},
	{name: "load-100", study: loaded(100, 24*time.Hour)},
	{name: "load-1000", study: loaded(1000, 4*time.Hour)},
	{name: "lognormal", study: study{traffic: workload.LogNormal, tables: []string{decisions}}},
	{name: "mix", study: study{
		traffic: workload.Mix, limit: algorithm.Limit{Requests: 600, Window: time.Minute}, algorithms: frames(1, 2), tables: []string{estimates},
		seeds: []uint64{1, 2, 3, 4},
	}},
	{name: "wander", study: study{traffic: workload.Wander, algorithms: append([]string{algorithm.Fixed}, frames(1, 4)...), tables: []string{estimates}}},
	{name: "spikes", study: spikes},
}
