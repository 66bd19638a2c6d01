package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"oauth-server/internal/simulate/algorithm"
)

// show writes the tables for people.
func (s *simulateAlgorithms) show(all []comparison) error {
	heading := func(cells ...string) [][]string { return [][]string{s.behind("RATE", "CLIENTS", cells)} }
	decisions := heading("ALGORITHM", "REQUESTS", "DENIED", "FALSE ADMITS", "FALSE DENIALS", "WRONG", "FAR", "WORST WINDOW")
	flows := heading("ALGORITHM", "REQUESTS/S", "AT MOST", "TOKENS/S", "AT MOST", "LONGEST WAIT")
	estimates := heading("ALGORITHM", "RATE ERROR", "AT MOST", "WRONGLY ALLOWED", "WRONGLY LIMITED", "WRONG", "NEAR")
	for i := range all {
		rate, clients := timesLimit(all[i].Rate), all[i].Clients
		for _, r := range all[i].Algorithms {
			decisions = append(decisions, s.behind(rate, clients, decisionRow(&r, all[i].Requests)))
			flows = append(flows, s.behind(rate, clients, []string{
				r.Algorithm, eachSecond(r.PerSecond(r.Requests)), fmt.Sprint(r.Spike.Requests),
				eachSecond(r.PerSecond(r.Admitted)), fmt.Sprint(r.Spike.Tokens), waited(r.LongestWait),
			}))
			if c := r.Counted; c != nil {
				estimates = append(estimates, s.behind(rate, clients, []string{
					r.Algorithm, shareOf(c.RateError), shareOf(c.LargestError),
					fmt.Sprint(c.WronglyAllowed), fmt.Sprint(c.WronglyLimited), shareOf(c.WrongRatio), shareOf(c.NearLimit),
				}))
			}
		}
	}
	if err := s.title(all); err != nil {
		return err
	}
	if err := s.table(decisions...); err != nil {
		return err
	}
	if err := s.titled(fmt.Sprintf("Requests and tokens of all clients; at most in %s", all[0].Per), flows); err != nil || len(estimates) == 1 {
		return err
	}
	return s.titled("All requests counted: the estimate against the exact count", estimates)
}

// title says what is compared.
func (s *simulateAlgorithms) title(all []comparison) error {
	c := &all[0]
	limit := fmt.Sprintf("limit %d/%s", c.Requests, c.Window)
	if c.Logs != nil {
		_, err := fmt.Fprintf(s.out, "%s, %s\n\n", printable(strings.Join(c.Logs, ", ")), limit)
		return err
	}
	rate := ""
	if len(s.rates) == 1 {
		rate = " at " + timesLimit(c.Rate)
	}
	_, err := fmt.Fprintf(s.out, "%s%s, clients: %d (%s), %s, %s, seed %d\n\n",
		c.Traffic, rate, c.Number, strings.Join(s.clients, ", "), limit, c.Duration, c.Seed)
	return err
}

// titled writes a table below its title.
func (s *simulateAlgorithms) titled(title string, rows [][]string) error {
	if _, err := fmt.Fprintf(s.out, "\n%s:\n\n", title); err != nil {
		return err
	}
	return s.table(rows...)
}

// behind returns the cells of a row, behind the rate and the clients where there are several.
func (s *simulateAlgorithms) behind(rate, clients string, cells []string) []string {
	if len(s.clients) > 1 {
		cells = slices.Insert(cells, 0, clients)
	}
	if len(s.rates) > 1 {
		cells = slices.Insert(cells, 0, rate)
	}
	return cells
}

func decisionRow(r *algorithm.Result, limit int64) []string {
	wrong, far, admits, denials := "-", "-", "-", "-"
	if r.Algorithm != algorithm.Unlimited {
		admits, denials = fmt.Sprint(r.FalseAdmits), fmt.Sprint(r.FalseDenials)
		wrong, far = shareOf(r.WrongRatio()), shareOf(r.FarRatio())
	}
	return []string{
		r.Algorithm, fmt.Sprint(r.Requests), fmt.Sprint(r.Denied), admits, denials, wrong, far,
		timesLimit(float64(r.WorstWindow) / float64(limit)),
	}
}

// waited writes how long a request was held, in seconds.
func waited(seconds float64) string {
	if seconds == 0 {
		return "-"
	}
	return strconv.FormatFloat(seconds, 'f', 1, 64) + " s"
}

func timesLimit(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) + "x" }

func eachSecond(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) }

// shareOf writes a share in percent, with the digits that small ones need.
func shareOf(f float64) string {
	digits := 2
	if f < 0.001 && f > 0 {
		digits = 4
	}
	return strconv.FormatFloat(100*f, 'f', digits, 64) + " %"
}
