package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"oauth-server/lab/load"
	"oauth-server/lab/page"
)

// report is what a run found.
type report struct {
	machine, date string
	took          time.Duration
	costs         []cost
	// capacity is how many requests the server answers in a second while there is always a next one: of the mix, and of
	// tokens without sign-ins.
	capacity, tokenCapacity float64
	rows                    []row
	recoveries              []recovery
}

// cost is the processor time of a request, in microseconds.
type cost struct {
	class   class
	server  float64 // of the server
	hashing float64 // of the processes that hash passwords
	n       int     // requests that were measured
}

// none is shown for the mode off.
const none = "none"

// The series of loads.
const (
	mixSeries   = "mix"
	tokenSeries = "tokens"
)

// row holds the figures of one load.
type row struct {
	series  string
	control string  // the mode, or none
	load    float64 // times the capacity
	offered float64 // requests a second
	classes map[class]figures
	tokens  figures // refreshes and codes together, which have one bar
	all     figures
	// goodput is the requests a second that were answered as asked for, before their callers hung up.
	goodput float64
	// useful is the processor time of those, by their costs, as a share of the time.
	useful float64
	// serverShare, hashingShare and others, for other programs, are shares of the processor. others should be near 0.
	serverShare, hashingShare, others float64
	memoryPeak                        int64 // bytes resident
}

// recovery is how soon after an overload the server was as quick as before.
type recovery struct {
	control string
	load    float64 // of the overload
	seconds float64
	ok      bool // false: not before the end of the measurement
}

func (r recovery) String() string {
	if !r.ok {
		return "not within the measurement"
	}
	return page.Number(1000*r.seconds) + " ms"
}

func (r *report) costOf(c class) float64 {
	for _, cost := range r.costs {
		if cost.class == c {
			return cost.server + cost.hashing
		}
	}
	return 0
}

// section is a part of the results file.
type section struct{ name, text string }

// sections returns the report in plain text.
func (r *report) sections() []section {
	return []section{
		{"costs", fmt.Sprintf("%s: %s. It took %s. Capacity: %s requests a second of the mix, %s of tokens without sign-ins.\n\n",
			r.date, r.machine, r.took, page.Number(r.capacity), page.Number(r.tokenCapacity)) +
			"Processor time per request, each class alone, in µs:\n\n" + r.costTable()},
		{"mix", "The mix, by offered load:\n\n" + r.loadTable(mixSeries)},
		{"tokens", "Tokens only:\n\n" + r.loadTable(tokenSeries)},
		{"recovery", r.recoveryTexts()},
	}
}

func (r *report) recoveryTexts() string {
	var b strings.Builder
	for _, found := range r.recoveries {
		fmt.Fprintf(&b, "Recovery after %s × capacity, control %s: %s.\n", page.Number(found.load), found.control, found)
	}
	return b.String()
}

func percent(share float64) string { return page.Number(100 * share) }

func (r *report) costTable() string {
	var rows [][]string
	for _, c := range r.costs {
		rows = append(rows, []string{c.class.String(), page.Number(c.server), page.Number(c.hashing), fmt.Sprint(c.n)})
	}
	return page.Table(slices.Insert(rows, 0, []string{"class", "server", "hashing processes", "requests"}))
}

func (r *report) loadTable(series string) string {
	const mega = 1 << 20
	capacity := r.capacity
	if series == tokenSeries {
		capacity = r.tokenCapacity
	}
	var rows [][]string
	for _, row := range r.rows {
		if row.series != series {
			continue
		}
		cells := []string{row.control, page.Number(row.load), percent(row.tokens.success()), percent(row.success(clientOnly))}
		if series == mixSeries {
			cells = append(cells, percent(row.success(signIn)))
		}
		cells = append(cells, percent(share(row.all.Statuses[503], row.all.due())), percent(share(row.all.Statuses[load.HungUp], row.all.due())),
			page.Number(row.tokens.p(50)), page.Number(row.tokens.p(99)), page.Number(row.goodput/capacity), percent(row.useful),
			percent(row.serverShare)+" + "+percent(row.hashingShare),
			fmt.Sprint(row.memoryPeak/mega), percent(row.others))
		rows = append(rows, cells)
	}
	head := []string{"control", "× capacity", "refresh and code ok %", "client_credentials ok %"}
	if series == mixSeries {
		head = append(head, "sign-in ok %")
	}
	head = append(head, "503 %", "hung up %", "refresh and code p50 ms", "p99 ms", "goodput ÷ capacity", "useful work, % of the processor",
		"server + hashing %", "MiB, peak", "other programs %")
	return page.Table(slices.Insert(rows, 0, head))
}

// success returns the share of OK requests of a class, or NaN if the class has no requests.
func (r *row) success(c class) float64 { return r.classes[c].success() }
