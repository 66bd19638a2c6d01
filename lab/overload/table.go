package overload

import (
	"fmt"
	"math"
	"strings"
)

// Text returns the report as Markdown, which also reads as plain text.
func (r *Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s. It took %s. Capacity: %s requests a second of the mix, %s of tokens without sign-ins.\n\n",
		r.Date, r.Machine, r.Took, number(r.Capacity), number(r.TokenCapacity))
	b.WriteString("What a request costs, each class alone, in processor µs:\n\n" + r.costTable())
	b.WriteString("\nThe mix, by how much of it is offered:\n\n" + r.loadTable(MixSeries))
	b.WriteString("\nTokens only:\n\n" + r.loadTable(TokenSeries))
	b.WriteString("\nThe mix, without and with one more client, which sends 50 times its limit:\n\n" + r.greedyTable())
	b.WriteString("\nWhat is to hold:\n\n" + r.barTable())
	return b.String()
}

func table(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(head)
	line(strings.Split(strings.Repeat("---,", len(head)-1)+"---", ","))
	for _, row := range rows {
		line(row)
	}
	return b.String()
}

func number(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case v >= 100 || v == 0:
		return fmt.Sprintf("%.0f", v)
	default:
		return fmt.Sprintf("%.3g", v)
	}
}

func percent(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	text := fmt.Sprintf("%.1f", 100*v)
	return strings.TrimSuffix(text, ".0")
}

func (r *Report) costTable() string {
	var rows [][]string
	for _, c := range r.Costs {
		rows = append(rows, []string{c.Class, number(c.Server), number(c.Hashing), fmt.Sprint(c.N)})
	}
	return table([]string{"class", "server", "hashing processes", "requests"}, rows)
}

// share of the requests of a row.
func share(n, of int) float64 { return float64(n) / float64(of) }

func (r *Report) loadTable(series string) string {
	const mega = 1 << 20
	capacity := r.Capacity
	if series == TokenSeries {
		capacity = r.TokenCapacity
	}
	var rows [][]string
	for _, row := range r.Rows {
		if row.Series != series {
			continue
		}
		cells := []string{row.Control, number(row.Load), number(row.Offered), percent(row.Tokens.Success()), percent(row.success(Client))}
		if series == MixSeries {
			cells = append(cells, percent(row.success(SignIn)))
		}
		cells = append(cells, percent(share(row.All.Refused, row.All.Due)), percent(share(row.All.HungUp, row.All.Due)),
			number(row.Tokens.P50), number(row.Tokens.P99), number(row.Goodput/capacity), percent(row.Useful),
			percent(row.ServerShare)+" + "+percent(row.HashingShare),
			fmt.Sprintf("%d, %d", row.MemoryBefore/mega, row.MemoryPeak/mega), percent(row.Others))
		rows = append(rows, cells)
	}
	head := []string{"control", "× capacity", "a second", "refresh and code ok %", "client_credentials ok %"}
	if series == MixSeries {
		head = append(head, "sign-in ok %")
	}
	return table(append(head, "503 %", "hung up %", "refresh and code p50 ms", "p99 ms", "goodput ÷ capacity", "useful work, % of the processor",
		"server + hashing %", "MiB before, peak", "other programs %"), rows)
}

// success returns the share of OK requests of a class, or NaN if the class has no requests.
func (r *Row) success(c Class) float64 { return r.Classes[c.String()].Success() }

// find returns the matching row, or nil.
func (r *Report) find(series, control string, load float64, greedy bool) *Row {
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Series == series && row.Control == control && row.Load == load && row.Greedy == greedy {
			return row
		}
	}
	return nil
}

// controls returns the modes that were measured, in their order.
func (r *Report) controls() (all []string) {
	seen := map[string]bool{}
	for _, row := range r.Rows {
		if !seen[row.Control] {
			seen[row.Control] = true
			all = append(all, row.Control)
		}
	}
	return all
}

func (r *Report) greedyTable() string {
	var rows [][]string
	for _, row := range r.Rows {
		if row.Series != GreedySeries {
			continue
		}
		who, denied := "without", "–"
		if row.Greedy {
			f := row.Classes[Greedy.String()]
			who, denied = "with", percent(share(f.Limited+f.Refused, f.Due))
		}
		rows = append(rows, []string{
			row.Control, number(row.Load), who, percent(row.Tokens.Success()), number(row.Tokens.P50), number(row.Tokens.P99),
			percent(row.success(Client)), number(row.Classes[Client.String()].P99), percent(row.success(SignIn)), denied,
		})
	}
	return table([]string{
		"control", "× capacity", "that client", "refresh and code ok %", "p50 ms", "p99 ms", "client_credentials ok %", "p99 ms",
		"sign-in ok %", "of that client denied %",
	}, rows)
}
