package accuracy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/lab/algorithm"
	"oauth-server/lab/page"
	"oauth-server/lab/workload"
)

// study compares algorithms on traffic that is made up, in simulated time. Zero values stand for what is usual.
type study struct {
	traffic    string
	limit      algorithm.Limit // 100 in a minute
	number     int             // of clients
	duration   time.Duration
	per        time.Duration // interval of spikes: a second
	algorithms []string      // all
	rates      []float64     // multiples of the limit
	retry      bool          // clients retry
	seeds      []uint64
	tables     []string // those of tables
}

// comparison is the results for one rate and one seed.
type comparison struct {
	workload.Spec
	results []algorithm.Result
}

// complete returns the study with what is usual in the place of zero values.
func (s study) complete() study {
	if s.limit.Requests == 0 {
		s.limit = algorithm.Limit{Requests: 100, Window: time.Minute}
	}
	if s.per == 0 {
		s.per = time.Second
	}
	if len(s.algorithms) == 0 {
		s.algorithms = algorithm.Names()
	}
	if len(s.rates) == 0 {
		s.rates = []float64{0}
	}
	if len(s.seeds) == 0 {
		s.seeds = []uint64{1}
	}
	return s
}

// run compares, with series over time if they are wanted.
func (s study) run(t *testing.T, series bool) (all []comparison) {
	t.Helper()
	s = s.complete()
	for _, rate := range s.rates {
		for _, seed := range s.seeds {
			c := comparison{Spec: workload.Spec{
				Traffic: s.traffic, Retry: s.retry, Rate: rate, Requests: s.limit.Requests, Window: s.limit.Window,
				Number: s.number, Duration: s.duration, Seed: seed,
			}}
			c.Spec = c.Complete()
			for _, name := range s.algorithms {
				r, err := algorithm.Run(workload.New(c.Spec), name, algorithm.Options{Limit: s.limit, Per: s.per, Series: series})
				check.OK(t, err)
				c.results = append(c.results, r)
			}
			all = append(all, c)
		}
	}
	return all
}

// text returns the results as tables, below a line that says what is compared.
func (s study) text(all []comparison) string {
	s = s.complete()
	var b strings.Builder
	b.WriteString(s.title(all))
	for _, name := range s.tables {
		t := tables(ratelimit.FormatWindow(s.per))[name]
		fmt.Fprintf(&b, "\n%s:\n\n", t.title)
		rows := [][]string{slices.Concat(s.labels("RATE", "SEED"), t.heads)}
		for i := range all {
			c := &all[i]
			for j := range c.results {
				if cells := t.row(c, &c.results[j]); cells != nil {
					rows = append(rows, slices.Concat(s.labels(timesLimit(c.Rate), fmt.Sprint(c.Seed)), cells))
				}
			}
		}
		b.WriteString(page.Table(rows))
	}
	return b.String()
}

// title says what is compared.
func (s study) title(all []comparison) string {
	c := &all[0]
	rate, duration := "", ", "+ratelimit.FormatWindow(c.Duration.Round(time.Second))
	if len(s.rates) == 1 {
		rate = " at " + timesLimit(c.Rate)
	}
	if slices.ContainsFunc(all, func(other comparison) bool { return other.Duration != c.Duration }) {
		duration = "" // it is usual for the traffic, and depends on the rate
	}
	return fmt.Sprintf("%s%s, %d client%s, limit %d/%s%s, seed %s\n", c.Traffic, rate, c.Number, strings.Repeat("s", min(1, c.Number-1)),
		c.Requests, ratelimit.FormatWindow(c.Window), duration, strings.Trim(fmt.Sprint(s.seeds), "[]"))
}

// labels returns what rows begin with: rate and seed, if there are several.
func (s study) labels(rate, seed string) (cells []string) {
	if len(s.rates) > 1 {
		cells = append(cells, rate)
	}
	if len(s.seeds) > 1 {
		cells = append(cells, seed)
	}
	return cells
}

// The names of the tables.
const (
	decisions = "decisions"
	flow      = "flow"
	estimates = "estimates"
)

// table has a row for each result; nil: none.
type table struct {
	title string
	heads []string
	row   func(c *comparison, r *algorithm.Result) []string
}

func tables(per string) map[string]table {
	return map[string]table{
		decisions: {
			"Decisions, against the exact log of the algorithm's own admissions",
			[]string{"ALGORITHM", "REQUESTS", "DENIED", "FALSE ADMITS", "FALSE DENIALS", "WRONG", "FAR", "WORST WINDOW"},
			decisionRow,
		},
		flow: {
			"Requests and tokens of all clients; AT MOST in any " + per,
			[]string{"ALGORITHM", "REQUESTS/S", "AT MOST", "TOKENS/S", "AT MOST", "LONGEST WAIT"},
			flowRow,
		},
		estimates: {
			"Estimates, against the exact count of all requests",
			[]string{"ALGORITHM", "RATE ERROR", "AT MOST", "WRONGLY ALLOWED", "WRONGLY LIMITED", "WRONG", "KEYS"},
			estimateRow,
		},
	}
}

func decisionRow(c *comparison, r *algorithm.Result) []string {
	wrong, far, admits, denials := "-", "-", "-", "-"
	if r.Algorithm != algorithm.Unlimited {
		admits, denials = fmt.Sprint(r.FalseAdmits), fmt.Sprint(r.FalseDenials)
		wrong, far = shareOf(r.WrongRatio()), shareOf(r.FarRatio())
	}
	return []string{
		r.Algorithm, fmt.Sprint(r.Requests), fmt.Sprint(r.Denied), admits, denials, wrong, far,
		timesLimit(float64(r.WorstWindow) / float64(c.Requests)),
	}
}

func flowRow(_ *comparison, r *algorithm.Result) []string {
	wait := "-"
	if r.LongestWait > 0 {
		wait = strconv.FormatFloat(r.LongestWait, 'f', 1, 64) + " s"
	}
	return []string{
		r.Algorithm, eachSecond(r.PerSecond(r.Requests)), spikeOf(r, r.Spike.Requests),
		eachSecond(r.PerSecond(r.Admitted)), spikeOf(r, r.Spike.Tokens), wait,
	}
}

func estimateRow(_ *comparison, r *algorithm.Result) []string {
	c := r.Counted
	if c == nil {
		return nil
	}
	return []string{
		r.Algorithm, shareOf(c.RateError), shareOf(c.LargestError), fmt.Sprint(c.WronglyAllowed), fmt.Sprint(c.WronglyLimited),
		shareOf(c.WrongRatio), fmt.Sprint(c.WrongKeys),
	}
}

// spikeOf writes the most in any interval, which is not known where only a sample of the requests was made.
func spikeOf(r *algorithm.Result, n int64) string {
	if r.Sampled {
		return "-"
	}
	return fmt.Sprint(n)
}

// timesLimit writes a multiple of the limit, with the digits that small ones need.
func timesLimit(f float64) string {
	digits := 2
	if f < 0.1 {
		digits = 3
	}
	return strconv.FormatFloat(f, 'f', digits, 64) + "x"
}

func eachSecond(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) }

// shareOf writes a share in percent, with the digits that small ones need.
func shareOf(f float64) string {
	digits := 2
	if f < 0.001 && f > 0 {
		digits = 4
	}
	return strconv.FormatFloat(100*f, 'f', digits, 64) + " %"
}
