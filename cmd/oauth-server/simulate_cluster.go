package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oauth-server/internal/fielderr"
	"oauth-server/internal/ratelimit"
	simcluster "oauth-server/internal/simulate/cluster"
	"oauth-server/internal/simulate/report"
	"oauth-server/internal/simulate/workload"
)

const simulateClusterLong = `Show how exactly several instances keep a limit together, and what that costs: how far they
overshoot, and how often they write and read.

The counters and the loop that shares them are those of the server itself, in simulated time:
ten minutes take seconds, and the same --seed gives the same result. The database is in memory,
behind a network with --latency (of a message, so a call takes twice as long) and --loss (of
messages, each way). With --flush plain:T the rule of the server is replaced by a plain interval,
for comparison: each instance writes and reads every key each T.

Requests come at random times, of users who have each as many (--zipf: some have more), and
ignore the answers. --rate 2x is twice the limit for each user; 500/s are requests per second of all.
--traffic and --clients make other traffic, and clients that react: "oauth-server simulate algorithms
--help" explains them.

MEAN, WORST and FIRST are what was admitted in windows in which a user was offered the limit or
more, in parts of the limit; FIRST in the first of these. LOG is the most in any window by an exact
log, which is above 1 with one instance too where frames are estimated. OF ONE is what all
instances admitted in parts of what one instance would have. docs/simulate-clusters.md has more.`

// simulateCluster holds the flags of the command.
type simulateCluster struct {
	*cli
	clusterTraffic
	cfg           simcluster.Config
	instances     []int
	flushes       []string
	limit         string
	loss, balance string
	down, steps   []string
	series, drawn bool
	chart         string
}

func newSimulateCluster(c *cli) *cobra.Command {
	s := &simulateCluster{cli: c}
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Show how exactly several instances keep a limit, and what that costs",
		Long:  simulateClusterLong,
		Example: `  oauth-server simulate cluster --instances 10 --limit 100/60s --rate 2x
  oauth-server simulate cluster --instances 10 --flush 1s,plain:1s,plain:100ms
  oauth-server simulate cluster --instances 1,10,100 --keys 10000 --rate 0.1x
  oauth-server simulate cluster --traffic spikes --clients retry-after --duration 2h
  oauth-server simulate cluster --loss 1% --skew 2s --down 2m+30s --step 1@3m:+1h --series -o json`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	f := cmd.Flags()
	f.IntSliceVar(&s.instances, "instances", []int{3}, "how many instances there are; several are simulated one after the other")
	f.StringVar(&s.limit, "limit", "100/60s", "limit of each user: REQUESTS/WINDOW, with the options of limits set")
	s.register(cmd)
	f.StringSliceVar(&s.flushes, "flush", []string{"1s"}, "flush interval of the server, or plain:T for a plain interval; several are simulated one after the other")
	f.DurationVar(&s.cfg.Network.Latency, "latency", 5*time.Millisecond, "how long a message to or from the database takes")
	f.DurationVar(&s.cfg.Network.Jitter, "jitter", 0, "by how much longer messages take on average, exponentially distributed")
	f.StringVar(&s.loss, "loss", "0%", "share of messages that are lost, each way")
	f.StringSliceVar(&s.down, "down", nil, "when the database does not answer: FROM+FOR, such as 2m+30s; may be repeated")
	f.DurationVar(&s.cfg.Skew, "skew", 0, "by how much the wall clocks may be wrong, either way")
	f.StringSliceVar(&s.steps, "step", nil, "a wall clock that is set: INSTANCE@AT:BY, such as 1@2m:+5m; may be repeated")
	f.StringVar(&s.balance, "balance", string(simcluster.Random), "how requests are spread: random, roundrobin, skewed (half of them to the first instance), or sticky (all of a user to one instance)")
	f.DurationVar(&s.cfg.Duration, "duration", 10*time.Minute, "simulated time")
	f.Uint64Var(&s.cfg.Seed, "seed", 1, "another seed gives another run of the same kind")
	f.BoolVar(&s.series, "series", false, "with -o json, the course of it too")
	chartFlag(cmd, &s.chart)
	_ = cmd.RegisterFlagCompletionFunc("balance", fixed(string(simcluster.Random), string(simcluster.RoundRobin), string(simcluster.Skewed), string(simcluster.Sticky)))
	return cmd
}

// clusterRun is a part of the answer.
type clusterRun struct {
	Flush string `json:"flush"`
	*simcluster.Result
}

// run simulates, and writes the answer.
func (s *simulateCluster) run(cmd *cobra.Command) error {
	cfgs, err := s.given(cmd)
	if err != nil {
		return usagef("%w", err)
	}
	if err := chartWritable(s.chart); err != nil {
		return err
	}
	var runs []clusterRun
	for i := range cfgs {
		cfg := &cfgs[i]
		cfg.Progress = s.progress(cfg)
		src, err := s.source(cfg)
		if err != nil {
			return err
		}
		r, err := simcluster.Run(cmd.Context(), *cfg, src)
		if err != nil {
			return err
		}
		if r.Unaccounted != 0 {
			return fmt.Errorf("the simulation is wrong: %d admitted requests are not accounted for; please report it with the command line", r.Unaccounted)
		}
		runs = append(runs, clusterRun{cfg.Flush.String(), r})
	}
	s.clearProgress()
	wrong := s.writeChart(runs)
	if s.output == outputJSON {
		for i := range runs {
			if !s.series {
				runs[i].Points = nil
			}
		}
		return errors.Join(wrong, s.json(map[string]any{"runs": runs}))
	}
	return errors.Join(wrong, s.show(runs))
}

// writeChart writes the charts that were asked for.
func (s *simulateCluster) writeChart(runs []clusterRun) error {
	if s.chart == "" {
		return nil
	}
	var all []report.Cluster
	for _, r := range runs {
		all = append(all, report.Cluster{Flush: r.Flush, Result: r.Result})
	}
	return report.WriteClusters(s.chart, all)
}

// simulatedBegin is when simulated requests begin: where windows of all usual lengths do.
var simulatedBegin = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// given returns what the flags mean. The error has all that is wrong with them.
func (s *simulateCluster) given(cmd *cobra.Command) (cfgs []simcluster.Config, err error) {
	limit, errs := s.parseLimit()
	s.cfg.Limit, s.cfg.Balance = limit, simcluster.Balance(s.balance)
	share, err := parseShare(s.loss)
	if err != nil {
		errs.Add("--loss", "%v", err)
	}
	s.cfg.Network.LoseRequest, s.cfg.Network.LoseReply = share, share
	for _, text := range s.down {
		from, length, ok := strings.Cut(text, "+")
		begin, err1 := time.ParseDuration(from)
		lasts, err2 := time.ParseDuration(length)
		if !ok || err1 != nil || err2 != nil {
			errs.Add("--down", "%q is not FROM+FOR, such as 2m+30s", text)
		}
		s.cfg.Network.Down = append(s.cfg.Network.Down, simcluster.Outage{From: begin, To: begin + lasts})
	}
	s.parseSteps(&errs)
	errs = append(errs, s.check(cmd, limit, s.cfg.Duration, s.cfg.Seed)...)
	flushes := make([]simcluster.Flush, len(s.flushes))
	for i, text := range s.flushes {
		interval, plain := strings.CutPrefix(text, "plain:")
		flushes[i].Plain = plain
		if flushes[i].Every, err = time.ParseDuration(interval); err != nil {
			errs.Add("--flush", "%q is not a duration such as 1s, or plain:100ms", text)
		}
	}
	if len(errs) > 0 {
		return nil, errs.Err()
	}
	for _, n := range s.instances {
		for _, flush := range flushes {
			cfg := s.cfg
			cfg.Instances, cfg.Flush = n, flush
			errs.AddUnreported(asFlags(fielderr.Of(cfg.Validate())))
			cfgs = append(cfgs, cfg)
		}
	}
	return cfgs, errs.Err()
}

// asFlags names fields by the flags that set them.
func asFlags(errs fielderr.Errors) (out fielderr.Errors) {
	for _, e := range errs {
		e.Path = "--" + strings.ReplaceAll(e.Path, "reply_loss", "loss")
		out = append(out, e)
	}
	return out
}

// parseLimit reads --limit.
func (s *simulateCluster) parseLimit() (l ratelimit.Limit, errs fielderr.Errors) {
	shown, errs := parseLimit(s.limit)
	if errs = errs.Under("--limit"); len(errs) > 0 {
		return l, errs
	}
	b, err := json.Marshal(shown)
	if err == nil {
		err = json.Unmarshal(b, &l)
	}
	if err != nil {
		errs.Add("--limit", "%v", err)
	}
	return l, errs
}

// parseSteps reads --step.
func (s *simulateCluster) parseSteps(errs *fielderr.Errors) {
	for _, text := range s.steps {
		number, rest, _ := strings.Cut(text, "@")
		at, by, _ := strings.Cut(rest, ":")
		var step simcluster.Step
		var err1, err2, err3 error
		step.Instance, err1 = strconv.Atoi(number)
		step.At, err2 = time.ParseDuration(at)
		step.By, err3 = time.ParseDuration(by)
		if err1 != nil || err2 != nil || err3 != nil {
			errs.Add("--step", "%q is not INSTANCE@AT:BY, such as 1@2m:+5m", text)
			continue
		}
		step.Instance-- // people count from 1
		s.cfg.Steps = append(s.cfg.Steps, step)
	}
}

// parseRate reads a number per second, or a multiple of the limit.
func parseRate(text string) (perSecond, multiple float64, err error) {
	number, isPerSecond := strings.CutSuffix(text, "/s")
	number, ofLimit := strings.CutSuffix(number, "x")
	rate, err := strconv.ParseFloat(number, 64)
	switch {
	case err != nil || isPerSecond == ofLimit || !(rate > 0 && rate <= workload.MaxRate):
		return 0, 0, fmt.Errorf("%q is not a multiple of the limit, such as 2x, or a number per second, such as 500/s", text)
	case ofLimit:
		return 0, rate, nil
	}
	return rate, 0, nil
}

// parseShare reads a share such as 1% or 0.01.
func parseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	share, err := strconv.ParseFloat(number, 64)
	if percent {
		share /= 100
	}
	if err != nil || !(share >= 0 && share < 1) {
		return 0, fmt.Errorf("%q is not a share from 0%% to less than 100%%", text)
	}
	return share, nil
}

// show writes a table for a person.
func (s *simulateCluster) show(runs []clusterRun) error {
	rows := [][]string{{"INSTANCES", "FLUSH", "REQUESTS", "ADMITTED", "MEAN", "WORST", "FIRST", "LOG", "OF ONE", "FALSE DENIALS"}}
	for _, r := range runs {
		mean, worst, first := "-", "-", "-"
		if w := r.Windows; w.Count > 0 {
			mean, worst, first = inParts(w.Mean), inParts(w.Worst), inParts(w.First)
		}
		rows = append(rows, []string{
			strconv.Itoa(r.Instances), r.Flush, whole(r.Requests), whole(r.Admitted), mean, worst, first,
			inParts(r.Over.Log), inParts(float64(r.Admitted) / float64(max(r.AdmittedByOne, 1))), whole(r.Over.FalseDenials),
		})
	}
	if err := s.table(rows...); err != nil {
		return err
	}
	rows = [][]string{{""}, {"INSTANCES", "FLUSH", "COMMANDS/S", "OF EACH", "WRITES/ADMITTED", "READS/ADMITTED", "KIB/S", "CONFLICTS", "UNKNOWN", "KEYS OF EACH"}}
	for _, r := range runs {
		commands, keys := r.PerSecond(r.Cost.Commands), 0
		for _, i := range r.PerInstance {
			keys = max(keys, i.Keys)
		}
		rows = append(rows, []string{
			strconv.Itoa(r.Instances), r.Flush, fmt.Sprintf("%.1f", commands), fmt.Sprintf("%.1f", commands/float64(r.Instances)),
			inParts(r.PerAdmitted(r.Cost.Writes)), inParts(r.PerAdmitted(r.Cost.Reads)), fmt.Sprintf("%.1f", r.PerSecond(r.Cost.Bytes)/1024),
			whole(r.Cost.Conflicts), whole(r.Cost.Unknown), strconv.Itoa(keys),
		})
	}
	return s.table(rows...)
}

func whole(n int64) string { return strconv.FormatInt(n, 10) }

func inParts(x float64) string { return fmt.Sprintf("%.3f", x) }

// progress returns what draws how far a run is, if there is a terminal to draw on.
func (s *simulateCluster) progress(cfg *simcluster.Config) func(time.Duration) {
	if !s.errTerminal {
		return nil
	}
	return func(at time.Duration) {
		s.drawn = true
		_, _ = fmt.Fprintf(s.errOut, "\r\x1b[K%d instances, %v: %.0f %%", cfg.Instances, cfg.Flush, 100*min(1, at.Seconds()/cfg.Duration.Seconds()))
	}
}

// clearProgress removes what progress has drawn.
func (s *simulateCluster) clearProgress() {
	if s.drawn {
		_, _ = fmt.Fprint(s.errOut, "\r\x1b[K")
	}
}
