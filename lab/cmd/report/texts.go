package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"oauth-server/lab/page"
)

// texts reads the plain-text results in a directory, and collects errors for missing ones.
type texts struct {
	dir     string
	missing []error
}

// cell returns a cell of a section of a file, as [page.Tables.Cell] does.
func (t *texts) cell(file, section, title, column string, row ...string) string {
	text, err := page.Read(filepath.Join(t.dir, file), section)
	if err == nil {
		text, err = page.Parse(text).Cell(title, column, row...)
	}
	if err != nil {
		t.missing = append(t.missing, fmt.Errorf("%s, %s: %w", file, section, err))
	}
	return text
}

// number returns the number of a cell.
func (t *texts) number(cell string) float64 {
	v, err := page.Figure(cell)
	if err != nil {
		t.missing = append(t.missing, err)
	}
	return v
}

// costs is the processor time of each kind of request.
func (t *texts) costs() string {
	const file, section = "overload.txt", "costs"
	var rows [][]string
	for _, c := range [][2]string{
		{"client_credentials", "`client_credentials`"},
		{"refresh_token", "refresh"},
		{"authorization_code", "authorization code"},
		{"sign-in", "sign-in"},
		{"wrong client secret", "wrong client secret"},
		{"denied by a limit (429)", "denied by a limit"},
	} {
		rows = append(rows, []string{c[1], t.cell(file, section, "", "server", c[0]), t.cell(file, section, "", "hashing processes", c[0])})
	}
	return page.Markdown([]string{"processor time, µs", "server", "password hashing"}, rows)
}

// overload is which requests are answered at some loads, with and without control.
func (t *texts) overload() string {
	const file, on, off = "overload.txt", "enforce", "none"
	var rows [][]string
	for _, l := range []struct{ shown, section, control, load string }{
		{"mix, 4 ×", "mix", on, "4"},
		{"mix, 12 ×", "mix", on, "12"},
		{"mix, 12 ×, no control", "mix", off, "12"},
		{"tokens, 1 ×", "tokens", on, "1"},
		{"tokens, 1 ×, no control", "tokens", off, "1"},
		{"tokens, 2 ×", "tokens", on, "2"},
		{"tokens, 2 ×, no control", "tokens", off, "2"},
	} {
		signIns := "–"
		if l.section == "mix" {
			signIns = t.cell(file, l.section, "", "sign-in ok %", l.control, l.load)
		}
		row := []string{l.shown}
		for _, column := range []string{"refresh and code ok %", "client_credentials ok %", "p99 ms"} {
			row = append(row, t.cell(file, l.section, "", column, l.control, l.load))
		}
		rows = append(rows, slices.Insert(row, 3, signIns))
	}
	return page.Markdown([]string{"load", "refreshes, codes", "`client_credentials`", "sign-ins", "p99, ms"}, rows)
}

const clusters = "clusters.txt"

// ofLimit returns a cell in parts of the limit in percent.
func (t *texts) ofLimit(cell string) string {
	return strconv.FormatFloat(100*t.number(cell), 'f', 1, 64)
}

// exactness is how exactly ten instances keep a limit.
func (t *texts) exactness() string {
	const rule = "1s"
	var rows [][]string
	for _, c := range []struct{ shown, section, title, flush string }{
		{"one busy key", "plain", "", rule},
		{"shared every 100 ms", "plain", "", "plain:100ms"},
		{"shared every second", "plain", "", "plain:1s"},
		{"10 % of messages lost", "faults", "10 % of messages lost", rule},
		{"slow database", "faults", "100 ms per message", rule},
		{"no database for five minutes", "faults", "no database", rule},
		{"clocks wrong by minutes", "faults", "two of them stepped", rule},
		{"limit of 20, bursts", "bursts", "1 and 10 instances", rule},
		{"each user on one instance", "bursts", "all requests of a user", rule},
	} {
		rows = append(rows, []string{
			c.shown, t.ofLimit(t.cell(clusters, c.section, c.title, "MEAN", "10", c.flush)),
			t.ofLimit(t.cell(clusters, c.section, c.title, "WORST", "10", c.flush)),
			t.cell(clusters, c.section, c.title, "COMMANDS/S", "10", c.flush),
		})
	}
	return page.Markdown([]string{"ten instances", "admitted, % of the limit", "worst window, %", "commands per second"}, rows)
}

// growth is what sharing costs by the number of instances.
func (t *texts) growth() string {
	var rows [][]string
	for _, g := range []struct{ shown, section, title, n string }{
		{"one busy key, 1 instance", "hot-key", "", "1"},
		{"100 instances", "hot-key", "", "100"},
		{"a million keys, 100 instances", "many-keys", "a million users, limit", "100"},
	} {
		over := "–"
		if g.section == "hot-key" {
			over = t.ofLimit(t.cell(clusters, g.section, g.title, "MEAN", g.n))
		}
		rows = append(rows, []string{
			g.shown, over, t.cell(clusters, g.section, g.title, "COMMANDS/S", g.n), t.cell(clusters, g.section, g.title, "KIB/S", g.n),
		})
	}
	return page.Markdown([]string{"", "admitted, % of the limit", "commands per second", "KiB per second"}, rows)
}

const accuracy = "accuracy.txt"

// algorithms is how often and how far algorithms are wrong.
func (t *texts) algorithms() string {
	const worst = "WORST WINDOW"
	var rows [][]string
	for _, a := range [][2]string{
		{"sliding", "`sliding`, the default"},
		{"sliding-60", "60 frames"},
		{"strict", "strict limit"},
		{"fixed", "`fixed`"},
		{"token-bucket", "token bucket, GCRA"},
	} {
		row := []string{a[1]}
		for _, c := range [][3]string{
			{"poisson", "WRONG", " %"}, {"poisson", "FAR", " %"}, {"lognormal", worst, "x"}, {"edge", worst, "x"},
		} {
			row = append(row, strings.TrimSuffix(t.cell(accuracy, c[0], "Decisions", c[1], a[0]), c[2]))
		}
		rows = append(rows, row)
	}
	return page.Markdown([]string{"", "wrong, %", "far off, %", "worst window: bursts", "attack"}, rows)
}

const scale = "scale.txt"

const (
	file    = "The embedded file"
	mongodb = "MongoDB's stand-in"
)

// signIns is what live sign-ins cost.
func (t *texts) signIns() string {
	var rows [][]string
	for _, s := range [][4]string{
		{file, "1,000", "bytes per sign-in", ", file"},
		{file, "10,000,000", "bytes per sign-in", ", file"},
		{mongodb, "2,000,000", "document size", ", MongoDB"},
	} {
		rows = append(rows, []string{
			s[1] + s[3], t.cell(scale, "families", s[0], s[2], s[1]), t.cell(scale, "families", s[0], "refresh, p50", s[1]),
			t.cell(scale, "families", s[0], "p99", s[1]),
		})
	}
	return page.Markdown([]string{"sign-ins", "size of one", "refresh, p50", "p99"}, rows)
}

// clients is what clients and policies cost at the start, and how soon changes are in force.
func (t *texts) clients() string {
	var rows [][]string
	for _, c := range []struct{ section, n, inForce string }{
		{"clients", "100,000", "usable after"},
		{"clients", "1,000,000", "usable after"},
		{"policies", "100,000", "in force on all after"},
	} {
		row := []string{c.n + " " + c.section}
		for _, store := range []string{file, mongodb} {
			row = append(row, t.cell(scale, c.section, store, "start", c.n), t.cell(scale, c.section, store, "peak", c.n))
		}
		rows = append(rows, append(row, t.cell(scale, c.section, mongodb, c.inForce, c.n)))
	}
	return page.Markdown([]string{"", "file: start", "memory", "MongoDB: start", "memory", "change in force after"}, rows)
}
