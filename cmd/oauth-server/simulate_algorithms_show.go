package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"oauth-server/internal/simulate/algorithm"
	"oauth-server/internal/simulate/report"
)

// The tables of the answer.
const (
	decisionsTable = "decisions"
	flowTable      = "flow"
	estimatesTable = "estimates"
)

// resultTable is a table with a row for each result.
type resultTable struct {
	name, title string
	heads       []string
	row         func(c *comparison, r *algorithm.Result) []string // nil: none
}

func resultTables(per string) []resultTable {
	return []resultTable{
		{
			decisionsTable, "Each decision by the exact log of what the algorithm has itself admitted",
			[]string{"ALGORITHM", "REQUESTS", "DENIED", "FALSE ADMITS", "FALSE DENIALS", "WRONG", "FAR", "WORST WINDOW"},
			decisionRow,
		},
		{
			flowTable, "Requests and tokens of all clients; at most in " + per,
			[]string{"ALGORITHM", "REQUESTS/S", "AT MOST", "TOKENS/S", "AT MOST", "LONGEST WAIT"},
			flowRow,
		},
		{
			estimatesTable, "All requests counted, the estimate against the exact count",
			[]string{"ALGORITHM", "RATE ERROR", "AT MOST", "WRONGLY ALLOWED", "WRONGLY LIMITED", "WRONG", "KEYS", "NEAR"},
			estimateRow,
		},
	}
}

func tableNames() (names []string) {
	for _, t := range resultTables("") {
		names = append(names, t.name)
	}
	return names
}

// show writes the tables for people.
func (s *simulateAlgorithms) show(all []comparison) error {
	if err := s.title(all); err != nil {
		return err
	}
	for _, t := range resultTables(all[0].Per) {
		rows := [][]string{slices.Concat(s.labels("RATE", "CLIENTS", "SEED"), t.heads)}
		for i := range all {
			for _, r := range all[i].Algorithms {
				if cells := t.row(&all[i], &r); cells != nil {
					rows = append(rows, slices.Concat(s.labels(timesLimit(all[i].Rate), all[i].Clients, fmt.Sprint(all[i].Seed)), cells))
				}
			}
		}
		if len(rows) == 1 || !slices.Contains(s.tables, t.name) {
			continue
		}
		if _, err := fmt.Fprintf(s.out, "\n%s:\n\n", t.title); err != nil {
			return err
		}
		if err := s.table(rows...); err != nil {
			return err
		}
	}
	return nil
}

// writeChart writes the charts that were asked for, and drops series that were not.
func (s *simulateAlgorithms) writeChart(all []comparison) error {
	if s.chart == "" {
		return nil
	}
	var drawn []report.Compared
	for i := range all {
		c := &all[i]
		name := strings.Join(s.labels(timesLimit(c.Rate), c.Clients, fmt.Sprintf("seed %d", c.Seed)), ", ")
		drawn = append(drawn, report.Compared{Name: name, Results: c.Algorithms})
	}
	err := report.WriteAlgorithms(s.chart, all[0].Per, drawn)
	for i := range all {
		for j := range all[i].Algorithms {
			if !s.series {
				all[i].Algorithms[j].Series = nil
			}
		}
	}
	return err
}

// title says what is compared.
func (s *simulateAlgorithms) title(all []comparison) error {
	c := &all[0]
	limit := fmt.Sprintf("limit %d/%s", c.Requests, c.Window)
	if c.Logs != nil {
		_, err := fmt.Fprintf(s.out, "%s, %s\n", printable(strings.Join(c.Logs, ", ")), limit)
		return err
	}
	rate := ""
	if len(s.rates) == 1 {
		rate = " at " + timesLimit(c.Rate)
	}
	duration := ", " + c.Duration
	if slices.ContainsFunc(all, func(other comparison) bool { return other.Duration != c.Duration }) {
		duration = "" // it is usual for the traffic, and depends on the rate
	}
	_, err := fmt.Fprintf(s.out, "%s%s, clients: %d (%s), %s%s, seed %s\n",
		c.Traffic, rate, c.Number, strings.Join(s.clients, ", "), limit, duration, strings.Trim(fmt.Sprint(s.seeds), "[]"))
	return err
}

// labels returns what rows begin with: of rate, clients and seed those of which there are several.
func (s *simulateAlgorithms) labels(rate, clients, seed string) (cells []string) {
	if len(s.rates) > 1 {
		cells = append(cells, rate)
	}
	if len(s.clients) > 1 {
		cells = append(cells, clients)
	}
	if len(s.seeds) > 1 {
		cells = append(cells, seed)
	}
	return cells
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
		shareOf(c.WrongRatio), fmt.Sprint(c.WrongKeys), shareOf(c.NearLimit),
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
