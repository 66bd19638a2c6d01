package accuracy

import (
	"time"

	"oauth-server/lab/algorithm"
	"oauth-server/lab/workload"
)

// section is a study whose tables the page has.
type section struct {
	name string
	study
}

// clusterSections are the sections that the tests of lab/clusters write.
var clusterSections = []string{"cluster-2x", "cluster-4x"}

var (
	loads = []float64{0.6, 0.65, 0.7, 0.8, 0.85, 0.9, 0.95, 1, 1.05, 1.1, 1.2, 1.3, 1.4}

	poisson = study{traffic: workload.Poisson, algorithms: frames(1, 2), tables: []string{estimates}, rates: loads}
	mix     = study{traffic: workload.Mix, limit: algorithm.Limit{Requests: 600, Window: time.Minute}, algorithms: frames(1, 2), tables: []string{estimates}}
	spikes  = study{
		traffic: workload.Spikes, limit: algorithm.Limit{Requests: 20, Window: time.Minute}, number: 100, duration: 2 * time.Hour,
		per: 10 * time.Second, tables: []string{flow},
	}
)

// frames returns the names of sliding windows with so many frames.
func frames(numbers ...int) (names []string) {
	for _, n := range numbers {
		names = append(names, algorithm.SlidingFrames(n))
	}
	return names
}

// decided returns the study of the decisions on a kind of traffic.
func decided(traffic string, more ...string) study {
	return study{traffic: traffic, tables: append([]string{decisions}, more...)}
}

// with returns a study with something changed.
func with(s study, change func(s *study)) study {
	change(&s)
	return s
}

var sections = []section{
	{name: "edge", study: decided(workload.Edge)},
	{name: "poisson", study: decided(workload.Poisson, estimates)},
	{name: "load", study: poisson},
	{name: "load-1000", study: with(poisson, func(s *study) {
		s.limit, s.duration = algorithm.Limit{Requests: 1000, Window: time.Minute}, 4*time.Hour
	})},
	{name: "lognormal", study: decided(workload.LogNormal)},
	{name: "pareto", study: decided(workload.Pareto)},
	{name: "zipf", study: decided(workload.Zipf)},
	{name: "attack", study: decided(workload.Attack, flow)},
	{name: "mix", study: with(mix, func(s *study) { s.seeds = []uint64{1, 2, 3, 4} })},
	{name: "mix-rates", study: with(mix, func(s *study) { s.algorithms, s.rates = frames(1), []float64{0.01, 0.03, 0.04} })},
	{name: "wander", study: study{
		traffic: workload.Wander, algorithms: append([]string{algorithm.Exact, algorithm.Fixed}, frames(1, 4)...), tables: []string{decisions, estimates},
	}},
	{name: "spikes", study: spikes},
	{name: "clients", study: with(spikes, func(s *study) {
		s.algorithms = []string{algorithm.Unlimited, algorithm.Sliding}
		s.clients = []string{
			workload.Ignore, workload.Hammer, workload.RetryAfter, workload.RetryAfterJitter, workload.Backoff,
			workload.XOAuth2, workload.Authlib, workload.OpenIDClient, workload.Considerate,
		}
	})},
}
