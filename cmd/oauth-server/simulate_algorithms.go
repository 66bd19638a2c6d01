package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oauth-server/internal/fielderr"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate"
	"oauth-server/internal/simulate/algorithm"
	"oauth-server/internal/simulate/events"
	"oauth-server/internal/simulate/report"
	"oauth-server/internal/simulate/traffic"
	"oauth-server/internal/simulate/workload"
)

const simulateAlgorithmsLong = `Compare the algorithms of rate limiting on the same traffic, with an exact log.

The traffic is that of a log, as for "oauth-server simulate", or without one it is made up, in
simulated time, the same for the same --seed. Algorithms that the server has are decided by
the code of the server itself. docs/accuracy.md explains what is counted as wrong, and has
the output of this command.

The table "decisions" judges each decision by the exact log of what the algorithm has itself
admitted: FALSE ADMITS were over the limit, FALSE DENIALS were not, WRONG is both of all
requests, FAR those that were off by more than 15 % of the limit. WORST WINDOW is the most
that one client got in any window, in multiples of the limit.

"flow" has requests and tokens per second on average, and the most in any interval of
--per; "unlimited" is what comes without a limit.

"estimates" counts all requests, whatever becomes of them, and compares what the algorithm
estimates with the exact count: by how much it is off on average and at most, and how often
it is on the other side of the limit, for how many KEYS of clients and users. NEAR are the
requests at which the count is within 15 % of the limit.`

// simulateAlgorithms holds the flags of the command.
type simulateAlgorithms struct {
	*cli
	logFlags
	spec       workload.Spec
	limit      string
	rates      []string
	clients    []string
	seeds      []uint
	algorithms []string
	burst      int64
	per        time.Duration
	series     bool
	chart      string
	tables     []string
}

func newSimulateAlgorithms(c *cli) *cobra.Command {
	s := &simulateAlgorithms{cli: c}
	cmd := &cobra.Command{
		Use:   "algorithms [LOG...]",
		Short: "Compare the algorithms of rate limiting on the same traffic",
		Long:  simulateAlgorithmsLong + "\n\n" + kindsHelp() + "\n" + behavioursHelp(),
		Example: `  oauth-server simulate algorithms --traffic edge
  oauth-server simulate algorithms --rate 0.7x,0.9x,1.1x --algorithm sliding,sliding-2
  oauth-server simulate algorithms --traffic spikes --clients hammer --limit 20/60s
  oauth-server simulate algorithms access.log.gz --limit 20/60s`,
		Args: cobra.ArbitraryArgs,
		RunE: s.run,
	}
	s.register(cmd)
	f := cmd.Flags()
	f.StringVar(&s.spec.Traffic, trafficFlag, workload.Poisson, "kind of traffic: "+strings.Join(kindNames(), ", "))
	f.StringSliceVar(&s.clients, "clients", []string{workload.Ignore}, "how clients react, or several ways: "+strings.Join(behaviourNames(), ", "))
	f.StringVar(&s.limit, "limit", "100/60s", "limit of each client and user: REQUESTS/WINDOW")
	f.StringSliceVar(&s.rates, "rate", nil, "rate of a client as a multiple of the limit, or several (default as is usual for the traffic)")
	f.StringSliceVar(&s.algorithms, "algorithm", nil, "algorithms: "+strings.Join(algorithm.Names(), ", ")+"; sliding-N has any number of frames (default those that fit the window)")
	f.Int64Var(&s.burst, "burst", 0, "requests that buckets admit at once (default the requests of the limit)")
	f.IntVar(&s.spec.Number, "number", 0, "number of clients (default as is usual for the traffic)")
	f.DurationVar(&s.spec.Duration, "duration", 0, "simulated time (default as is usual for the traffic)")
	f.DurationVar(&s.spec.Lifetime, "token-lifetime", time.Hour, "how long a token lives")
	f.UintSliceVar(&s.seeds, "seed", []uint{1}, "another seed makes other traffic of the same kind; or several")
	f.DurationVar(&s.per, "per", time.Second, "interval that spikes are measured in")
	f.StringSliceVar(&s.tables, "table", tableNames(), "tables to show")
	f.BoolVar(&s.series, "series", false, "with -o json, the requests and tokens of each interval too; of more than 100,000, each two become one")
	chartFlag(cmd, &s.chart)
	_ = cmd.RegisterFlagCompletionFunc(trafficFlag, fixed(kindNames()...)) // these fail for flags that are not there
	_ = cmd.RegisterFlagCompletionFunc("clients", fixed(behaviourNames()...))
	_ = cmd.RegisterFlagCompletionFunc("algorithm", fixed(algorithm.Names()...))
	_ = cmd.RegisterFlagCompletionFunc("table", fixed(tableNames()...))
	return cmd
}

const trafficFlag = "traffic"

func kindNames() (names []string) {
	for _, k := range workload.Kinds() {
		names = append(names, k.Name)
	}
	return names
}

func behaviourNames() (names []string) {
	for _, b := range workload.Behaviours() {
		names = append(names, b.Name)
	}
	return names
}

func kindsHelp() string {
	var b strings.Builder
	b.WriteString("Traffic:\n")
	for _, k := range workload.Kinds() {
		fmt.Fprintf(&b, "  %-18s %s\n", k.Name, k.About)
	}
	return b.String()
}

func behavioursHelp() string {
	var b strings.Builder
	b.WriteString("Clients:\n")
	for _, k := range workload.Behaviours() {
		fmt.Fprintf(&b, "  %-18s %s\n", k.Name, k.About)
		if k.Source != "" {
			fmt.Fprintf(&b, "  %-18s (%s)\n", "", k.Source)
		}
	}
	return b.String()
}

// comparison is the answer: the results at one rate.
type comparison struct {
	workload.Spec
	Logs       []string           `json:"logs,omitempty"`
	Lines      *simulate.Lines    `json:"lines,omitempty"`
	Window     string             `json:"window"`
	Duration   string             `json:"duration,omitempty"`
	Lifetime   string             `json:"token_lifetime,omitempty"`
	Burst      int64              `json:"burst,omitempty"`
	Per        string             `json:"per"`
	Algorithms []algorithm.Result `json:"algorithms"`
}

// run compares, and writes the answer.
func (s *simulateAlgorithms) run(cmd *cobra.Command, logs []string) error {
	options, specs, err := s.given()
	if err != nil {
		return usagef("%w", err)
	}
	if err := chartWritable(s.chart); err != nil {
		return err
	}
	var all []comparison
	if len(logs) > 0 {
		all, err = s.compareLogs(cmd, logs, options)
	} else {
		all, err = s.compareSpecs(cmd, specs, options)
	}
	if err != nil {
		return err
	}
	wrong := s.writeChart(all)
	if s.output == outputJSON {
		return errors.Join(wrong, s.json(map[string]any{"comparisons": all}))
	}
	return errors.Join(wrong, s.show(all))
}

// compareSpecs compares on traffic that is made up.
func (s *simulateAlgorithms) compareSpecs(cmd *cobra.Command, specs []workload.Spec, o algorithm.Options) (all []comparison, err error) {
	for _, spec := range specs {
		c := comparison{
			Spec: spec, Window: ratelimit.FormatWindow(spec.Window), Duration: ratelimit.FormatWindow(spec.Duration.Round(time.Second)),
			Lifetime: ratelimit.FormatWindow(spec.Lifetime), Burst: s.burst, Per: ratelimit.FormatWindow(s.per),
		}
		open := func() (traffic.Source, error) { return workload.New(spec) }
		o.Series = s.series || s.chart != "" && report.OverTime(len(specs), len(s.algorithms), spec.Duration, s.per)
		bar := s.newComparing(spec.Duration)
		o.Progress = bar.show
		c.Algorithms, err = algorithm.Compare(cmd.Context(), s.algorithms, open, o)
		bar.clear()
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// compareLogs compares on the traffic of logs, which each algorithm reads for itself.
func (s *simulateAlgorithms) compareLogs(cmd *cobra.Command, logs []string, o algorithm.Options) ([]comparison, error) {
	if slices.Contains(logs, "-") {
		return nil, usagef("-: each algorithm reads the log, and standard input can be read once: name a file")
	}
	for _, flag := range []string{trafficFlag, "clients", "rate", "number", "duration", "token-lifetime", "seed"} {
		if cmd.Flags().Changed(flag) {
			return nil, usagef("--%s is of traffic that is made up: leave out it, or the log", flag)
		}
	}
	var first *events.Reader // that of the first algorithm: all read the same lines
	replay := &simulation{cli: s.cli, logFlags: s.logFlags}
	bar := s.newComparing(0)
	o.Progress = bar.show
	results, err := algorithm.Compare(cmd.Context(), s.algorithms, func() (traffic.Source, error) {
		r, err := replay.open(logs)
		if err != nil {
			return nil, err
		}
		if first == nil { // it runs before the others
			first = r
		}
		return r, nil
	}, o)
	bar.clear()
	if err != nil {
		return nil, err
	}
	lines := linesOf(first)
	replay.warn(&simulate.Result{Lines: lines})
	if lines.Read == 0 {
		return nil, noRequests(logs, &lines)
	}
	return []comparison{{
		Spec: workload.Spec{Traffic: "log", Requests: o.Limit.Requests}, Logs: logs, Lines: &lines,
		Window: ratelimit.FormatWindow(o.Limit.Window), Burst: s.burst, Per: ratelimit.FormatWindow(s.per), Algorithms: results,
	}}, nil
}

// given returns what the flags mean. The error has all that is wrong with them.
func (s *simulateAlgorithms) given() (o algorithm.Options, specs []workload.Spec, err error) {
	l, errs := parseLimit(s.limit)
	errs = errs.Under("--limit")
	if head, _, more := strings.Cut(s.limit, ","); more {
		errs.Add("--limit", "has options: give %s alone, and choose by --algorithm", head)
	}
	if len(errs) > 0 {
		return o, nil, errs.Err() // all else depends on it
	}
	o = algorithm.Options{Limit: algorithm.Limit{Requests: l.Requests, Burst: s.burst}, Per: s.per, Series: s.series}
	o.Limit.Window, _ = time.ParseDuration(l.Window) // it is one
	s.spec.Requests, s.spec.Window = o.Limit.Requests, o.Limit.Window
	errs = s.chooseAlgorithms(o.Limit)
	for _, name := range s.tables {
		if !slices.Contains(tableNames(), name) {
			errs.Add("--table", "there is no table %q; there are %s", name, strings.Join(tableNames(), ", "))
		}
	}
	if s.per < time.Millisecond || s.per%time.Millisecond != 0 {
		errs.Add("--per", "%v is not a whole number of milliseconds", s.per)
	}
	if len(s.rates) == 0 {
		s.rates = []string{usualRate}
	}
	for _, rate := range s.rates {
		s.spec.Rate = 0
		if rate != usualRate {
			if s.spec.Rate, err = strconv.ParseFloat(strings.TrimSuffix(rate, "x"), 64); err != nil || s.spec.Rate == 0 {
				errs.Add("--rate", "%q is not a multiple of the limit, such as 1.5x", rate)
				continue
			}
		}
		more, wrong := s.each()
		for _, w := range wrong {
			if !slices.Contains(errs, w) {
				errs = append(errs, w)
			}
		}
		specs = append(specs, more...)
	}
	return o, specs, errs.Err()
}

// each returns the spec for all clients and seeds.
func (s *simulateAlgorithms) each() (specs []workload.Spec, errs fielderr.Errors) {
	for _, clients := range s.clients {
		for _, seed := range s.seeds {
			one := s.spec
			one.Clients, one.Seed = clients, uint64(seed)
			one, err := one.Complete()
			specs, errs = append(specs, one), append(errs, flagged(err)...)
		}
	}
	return specs, errs
}

// usualRate stands for the rate that is usual for the traffic.
const usualRate = ""

// flagged names the flags in what is wrong with a spec.
func flagged(err error) fielderr.Errors {
	errs := fielderr.Of(err)
	for i := range errs {
		errs[i].Path = "--" + strings.Replace(errs[i].Path, "lifetime", "token-lifetime", 1)
	}
	return errs
}

// chooseAlgorithms chooses those that fit the limit unless others are named.
func (s *simulateAlgorithms) chooseAlgorithms(l algorithm.Limit) (errs fielderr.Errors) {
	if err := l.Validate(); err != nil { // of the burst: the rest is valid
		return flagged(err)
	}
	if len(s.algorithms) == 0 {
		s.algorithms = algorithm.Fitting(l)
	}
	for _, name := range s.algorithms {
		if _, err := algorithm.New(name, l); err != nil {
			errs.Add("--algorithm", "%v", err)
		}
	}
	return errs
}
