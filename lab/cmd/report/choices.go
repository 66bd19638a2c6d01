package main

import (
	"fmt"
	"slices"

	"oauth-server/lab/page"
)

// choice is a table of the page: some rows of the benchmarks, with a column for each label.
type choice struct {
	section string
	peers   bool        // the best value of a row is bold
	columns [][2]string // labels and headings
	rows    [][2]string // what a row is about, and what the page calls it
}

const (
	busyKey  = "10-instances, 1-users, 1000-per-20s, 500-offered-per-s"
	smallKey = "10-instances, 10-users, 10-per-20s, 30-offered-per-s"
	farKeys  = "3-instances, 2000-users, 100-per-20s, 400-offered-per-s"
	overBy   = "database, admitted over the limit: "
	commands = "database, commands for an admitted request: "
)

var choices = []choice{
	{
		"tokens", true,
		[][2]string{{ours, "this server"}, {"ours without access log", "without access log"}, {"fosite", "fosite"}, {"go-oauth2", "go-oauth2"}, {"bare", "bare handler"}},
		[][2]string{
			{"token requests, one core", "requests per second, one core"},
			{"a token request", "processor time of one, µs"},
			{"token request at half that rate, p99", "p99 at half that rate, µs"},
		},
	},
	{
		"stored", false,
		[][2]string{{"1 connection", "1 connection"}, {ours, "64 connections"}},
		[][2]string{
			{"refreshes on the embedded store, 64 connections (target 8 ×)", "refreshes per second"},
			{"codes on the embedded store, 64 connections (target 8 ×)", "codes per second"},
		},
	},
	{
		"decisions", true,
		[][2]string{
			{ours, "this server"},
			{"go-limiter", "go-limiter"},
			{"throttled", "throttled"},
			{"ulule", "ulule"},
			{"x-time-rate", "x/time/rate"},
			{"redis_rate", "redis_rate"},
		},
		[][2]string{
			{"decision, the same one of 100,000 keys, 1 core", "one key, ns"},
			{"decision, a thousand in turn of a million keys, 1 core", "a thousand keys in turn, ns"},
			{"decision, any of a million keys, 1 core", "any of a million keys, ns"},
			{"memory of a key, of a million", "memory of a key, B"},
			{"processor time of a garbage collection, a million keys", "garbage collection, a million keys, ms"},
		},
	},
	{
		"gateway", true,
		[][2]string{
			{ours, "this gateway"},
			{"httputil.ReverseProxy", "Go's ReverseProxy"},
			{"nginx with limit_req", "nginx, limit_req"},
			{"denied", "denied by this gateway"},
			{"direct", "no proxy"},
		},
		[][2]string{
			{"requests through the gateway, one core", "requests per second, one core"},
			{"a request through the gateway", "processor time of one, µs"},
			{"2,000 requests per second through the gateway, p50", "p50 at 2,000 per second, µs"},
			{"2,000 requests per second through the gateway, p99", "p99 at 2,000 per second, µs"},
		},
	},
	{
		"abuse", true,
		[][2]string{{ours, "with limits"}, {"without limits", "without"}},
		[][2]string{
			{"good clients alone, p99", "no attack"},
			{"good clients beside one at 50 times its limit, p99", "a client at 50 times its limit"},
			{"good clients in a flood of wrong secrets, p99", "wrong client secrets"},
			{"good clients in a flood of sign-ins, p99", "sign-ins"},
		},
	},
	{
		"database", false,
		[][2]string{{ours, "this server"}, {"every-second", "exchange every second"}, {"increment", "`$inc` per request, computed"}},
		[][2]string{
			{overBy + busyKey, "one busy key: over the limit, %"},
			{commands + busyKey, "one busy key: commands"},
			{overBy + smallKey, "limits of 10: over the limit, %"},
			{commands + smallKey, "limits of 10: commands"},
			{commands + farKeys, "2,000 keys far below the limit: commands"},
		},
	},
}

// choose returns a table of the page in Markdown.
func (r *results) choose(c choice) (string, error) {
	heads, all := []string{""}, rows()
	for _, column := range c.columns {
		heads = append(heads, column[1])
	}
	var lines [][]string
	for _, chosen := range c.rows {
		i := slices.IndexFunc(all, func(w row) bool { return w.about == chosen[0] })
		if i < 0 {
			return "", fmt.Errorf("%s: there is no row %q", c.section, chosen[0])
		}
		figures, err := r.figures(&all[i])
		if err != nil {
			return "", err
		}
		best, _ := best(figures, all[i].more)
		line := []string{chosen[1]}
		for _, column := range c.columns {
			line = append(line, cell(figures, column[0], best, c.peers))
		}
		lines = append(lines, line)
	}
	return page.Markdown(heads, lines), nil
}

// cell shows the figure with a label, if there is one: in bold if it is the best.
func cell(all []figure, label string, best float64, bold bool) string {
	i := slices.IndexFunc(all, func(f figure) bool { return f.label == label })
	switch {
	case i < 0:
		return "–"
	case bold && all[i].value == best && !all[i].reference:
		return "**" + page.Number(best) + "**"
	}
	return page.Number(all[i].value)
}
