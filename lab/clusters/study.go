// Package clusters shows how exactly several instances keep a limit together, and what that costs. The counters and the
// loop that shares them are those of the server, in simulated time. The database is in memory, behind a network. The
// same seed gives the same result.
package clusters

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"oauth-server/internal/simulate/cluster"
	"oauth-server/internal/simulate/traffic"
	"oauth-server/internal/simulate/workload"
	"oauth-server/lab/page"
)

// Study is clusters that differ in the number of instances and in when they share counts. Zero values stand for
// what is said beside them.
type Study struct {
	Config    cluster.Config // without Instances and Flush; latency 5 ms, balance random, 10 minutes, seed 1
	Instances []int
	Flushes   []cluster.Flush // the rule of the server, each second

	// The requests are those of independent users who ignore the answers: Rate in limits for each user, or so many
	// per second of all. With Spec.Traffic they are of that kind, and clients react as Spec.Clients says.
	Rate, PerSecond float64
	Users           int // 1
	Spec            workload.Spec
}

// Run is one cluster and what it did.
type Run struct {
	Flush  cluster.Flush
	Result *cluster.Result
}

// begin is when requests begin: where windows of all usual lengths do.
var begin = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func (s *Study) config() cluster.Config {
	c := s.Config
	if c.Network.Latency == 0 {
		c.Network.Latency = 5 * time.Millisecond
	}
	if c.Balance == "" {
		c.Balance = cluster.Random
	}
	if c.Duration == 0 {
		c.Duration = 10 * time.Minute
	}
	if c.Seed == 0 {
		c.Seed = 1
	}
	return c
}

// Run simulates all clusters, one after the other.
func (s *Study) Run(ctx context.Context) (runs []Run, err error) {
	flushes := s.Flushes
	if len(flushes) == 0 {
		flushes = []cluster.Flush{{Every: time.Second}}
	}
	for _, n := range s.Instances {
		for _, flush := range flushes {
			cfg := s.config()
			cfg.Instances, cfg.Flush = n, flush
			requests, err := s.requests(&cfg)
			if err != nil {
				return nil, err
			}
			r, err := cluster.Run(ctx, cfg, requests)
			if err != nil {
				return nil, err
			}
			if r.Unaccounted != 0 {
				return nil, fmt.Errorf("the simulation is wrong: %d admitted requests are not accounted for", r.Unaccounted)
			}
			runs = append(runs, Run{flush, r})
		}
	}
	return runs, nil
}

func (s *Study) requests(cfg *cluster.Config) (traffic.Source, error) {
	l := cfg.Limit
	if s.Spec.Traffic != "" {
		spec := s.Spec
		spec.Requests, spec.Window, spec.Duration, spec.Seed = l.Requests, l.Window, cfg.Duration, cfg.Seed
		return workload.New(spec)
	}
	users := max(s.Users, 1)
	perSecond := s.PerSecond + s.Rate*float64(users)*float64(l.Requests)/l.Window.Seconds()
	return &cluster.Poisson{Begin: begin, Duration: cfg.Duration, Rate: perSecond, Users: users, Seed: cfg.Seed}, nil
}

// Text returns the results as two tables.
func Text(runs []Run) string {
	exact := [][]string{{"INSTANCES", "FLUSH", "REQUESTS", "ADMITTED", "MEAN", "WORST", "FIRST", "LOG", "OF ONE", "FALSE DENIALS"}}
	costs := [][]string{{"INSTANCES", "FLUSH", "COMMANDS/S", "OF EACH", "WRITES/ADMITTED", "READS/ADMITTED", "KIB/S", "CONFLICTS", "UNKNOWN", "KEYS OF EACH"}}
	for _, run := range runs {
		r, flush := run.Result, run.Flush.String()
		mean, worst, first := "-", "-", "-"
		if w := r.Windows; w.Count > 0 {
			mean, worst, first = inParts(w.Mean), inParts(w.Worst), inParts(w.First)
		}
		exact = append(exact, []string{
			strconv.Itoa(r.Instances), flush, whole(r.Requests), whole(r.Admitted), mean, worst, first,
			inParts(r.Over.Log), inParts(float64(r.Admitted) / float64(max(r.AdmittedByOne, 1))), whole(r.Over.FalseDenials),
		})
		commands, keys := r.PerSecond(r.Cost.Commands), 0
		for _, i := range r.PerInstance {
			keys = max(keys, i.Keys)
		}
		costs = append(costs, []string{
			strconv.Itoa(r.Instances), flush, fmt.Sprintf("%.1f", commands), fmt.Sprintf("%.1f", commands/float64(r.Instances)),
			inParts(r.PerAdmitted(r.Cost.Writes)), inParts(r.PerAdmitted(r.Cost.Reads)), fmt.Sprintf("%.1f", r.PerSecond(r.Cost.Bytes)/1024),
			whole(r.Cost.Conflicts), whole(r.Cost.Unknown), strconv.Itoa(keys),
		})
	}
	return page.Table(exact) + "\n" + page.Table(costs)
}

func whole(n int64) string { return strconv.FormatInt(n, 10) }

func inParts(x float64) string { return fmt.Sprintf("%.3f", x) }
