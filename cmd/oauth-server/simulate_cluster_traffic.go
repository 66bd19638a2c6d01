package main

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oauth-server/internal/fielderr"
	"oauth-server/internal/ratelimit"
	simcluster "oauth-server/internal/simulate/cluster"
	"oauth-server/internal/simulate/traffic"
	"oauth-server/internal/simulate/workload"
)

// clusterTraffic says what requests a simulated cluster gets: of independent users who ignore the answers, or of a kind
// that "simulate algorithms" has too.
type clusterTraffic struct {
	rate, clients string
	users         int
	zipf          float64

	perSecond float64       // of all users
	spec      workload.Spec // of no kind: independent users
}

func (t *clusterTraffic) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&t.rate, "rate", "2x", "requests: a multiple of the limit for each user, or so many per second of all users, such as 500/s")
	f.IntVar(&t.users, "keys", 1, "how many users there are; with --traffic, clients (default as is usual for the traffic)")
	f.Float64Var(&t.zipf, "zipf", 0, "exponent above 1 by which some users have more requests than others; 0: all have as many")
	f.StringVar(&t.spec.Traffic, trafficFlag, "", "kind of traffic, instead of independent users: "+strings.Join(clusterKinds(), ", "))
	f.StringVar(&t.clients, "clients", workload.Ignore, "with --traffic, how clients react: "+strings.Join(behaviourNames(), ", "))
	_ = cmd.RegisterFlagCompletionFunc(trafficFlag, fixed(clusterKinds()...)) // these fail for flags that are not there
	_ = cmd.RegisterFlagCompletionFunc("clients", fixed(behaviourNames()...))
}

// clusterKinds are the kinds of traffic of which all requests are made: a cluster cannot do with a sample.
func clusterKinds() []string {
	return slices.DeleteFunc(kindNames(), func(name string) bool { return name == workload.Mix })
}

// check completes what the flags say, for traffic of that limit. It returns all that is wrong with it.
func (t *clusterTraffic) check(cmd *cobra.Command, l ratelimit.Limit, duration time.Duration, seed uint64) (errs fielderr.Errors) {
	perSecond, multiple, err := parseRate(t.rate)
	if err != nil {
		errs.Add("--rate", "%v", err)
	}
	changed := cmd.Flags().Changed
	if t.spec.Traffic == "" {
		if changed("clients") {
			errs.Add("--clients", "independent users ignore the answers: choose a --traffic")
		}
		if t.users < 1 || t.users > simcluster.MaxKeys {
			errs.Add("--keys", "%d is not from 1 to %d", t.users, simcluster.MaxKeys)
		}
		if t.zipf != 0 && !(t.zipf > 1 && t.zipf <= 100) {
			errs.Add("--zipf", "%g is not above 1, or above 100", t.zipf)
		}
		t.perSecond = perSecond + multiple*float64(t.users)*float64(l.Requests)/l.Window.Seconds()
		return errs
	}
	if perSecond > 0 {
		errs.Add("--rate", "with --traffic it is a multiple of the limit, such as 2x")
	}
	if changed("zipf") {
		errs.Add("--zipf", "it is not of --traffic; there is --traffic zipf")
	}
	if t.spec.Traffic == workload.Mix {
		errs.Add("--traffic", "of %s only a sample is made, so a cluster cannot be simulated with it", workload.Mix)
	}
	if len(errs) > 0 {
		return errs
	}
	t.spec.Clients, t.spec.Requests, t.spec.Window, t.spec.Duration, t.spec.Seed = t.clients, l.Requests, l.Window, duration, seed
	if changed("rate") {
		t.spec.Rate = multiple
	}
	if changed("keys") {
		if t.spec.Number = t.users; t.users < 1 {
			errs.Add("--keys", "%d is less than 1", t.users)
		}
	}
	t.spec, err = t.spec.Complete()
	for _, e := range flagged(err) {
		e.Path = strings.Replace(e.Path, "--number", "--keys", 1)
		errs.AddUnreported(fielderr.Errors{e})
	}
	return errs
}

// source returns the requests.
func (t *clusterTraffic) source(cfg *simcluster.Config) (traffic.Source, error) {
	if t.spec.Traffic != "" {
		return workload.New(t.spec)
	}
	return &simcluster.Poisson{
		Begin: simulatedBegin, Duration: cfg.Duration, Rate: t.perSecond, Users: t.users, Zipf: t.zipf, Seed: cfg.Seed,
	}, nil
}
