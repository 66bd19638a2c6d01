package report

import (
	"fmt"
	"slices"
	"strconv"

	"oauth-server/internal/simulate"
	"oauth-server/internal/simulate/chart"
	"oauth-server/internal/simulate/traffic"
)

// Table is a table of a result, for the page and the terminal. The first cell of a row names the row.
type Table struct {
	Caption  string
	Columns  []column
	Rows     []row
	Sortable bool
	More     string // describes the rows that are left out
}

type column struct {
	Name   string
	Number bool
	Sorted string // how the rows are sorted by this column: ascending, descending or not
	rare   bool   // left out if it has only zeros
}

type row struct {
	Cells []cell
	X     string // of a chart
}

type cell struct {
	Text   string
	Sort   string // sort value of a number or a time
	Number bool
	Alarm  bool
}

func text(s string) cell { return cell{Text: printable(s)} }

func number[N int | int64 | uint64](n N) cell {
	return cell{Text: chart.Count(n), Sort: strconv.FormatInt(int64(n), 10), Number: true}
}

func part(share float64) cell {
	return cell{Text: Percent(share), Sort: strconv.FormatFloat(share, 'g', -1, 64), Number: true}
}

func seconds(s simulate.Seconds) cell {
	if s == 0 {
		return nothing
	}
	return cell{Text: duration(s), Sort: strconv.FormatFloat(float64(s), 'g', -1, 64), Number: true}
}

// nothing is the cell of a number that does not apply.
var nothing = cell{Text: "-", Sort: "0", Number: true}

// users is the cell of a number of users that may be an estimate.
func users(n uint64, estimated bool) cell {
	c := number(n)
	c.Text = About(n, estimated)
	return c
}

func (c cell) alarm(set bool) cell {
	c.Alarm = set
	return c
}

// outcomes returns the cells of outcomeColumns.
func outcomes(c *simulate.Counts) []cell {
	return []cell{number(c.Denied).alarm(c.Denied > 0), number(c.Delayed), number(c.Reused), number(c.Banned).alarm(c.Banned > 0), number(c.Failed)}
}

var outcomeColumns = []column{
	{Name: "Denied", Number: true},
	{Name: "Delayed", Number: true, rare: true},
	{Name: "Reused", Number: true, rare: true},
	{Name: "Banned", Number: true, rare: true},
	{Name: "Failed", Number: true, rare: true},
}

// withoutEmpty takes out the rare columns without a number above 0.
func (t *Table) withoutEmpty() *Table {
	for i := len(t.Columns) - 1; i >= 0; i-- {
		if !t.Columns[i].rare || slices.ContainsFunc(t.Rows, func(r row) bool { return r.Cells[i].Sort != "0" }) {
			continue
		}
		t.Columns = slices.Delete(t.Columns, i, i+1)
		for j := range t.Rows {
			t.Rows[j].Cells = slices.Delete(t.Rows[j].Cells, i, i+1)
		}
	}
	return t
}

// Clients returns a table of at most that many clients.
func Clients(r *simulate.Result, most int) *Table {
	t := &Table{Caption: "Clients, most refused first", Sortable: true}
	t.Columns = slices.Concat(
		[]column{{Name: "Client"}, {Name: "Requests", Number: true}, {Name: "Admitted", Number: true}},
		outcomeColumns,
		[]column{
			{Name: "Refused", Number: true},
			{Name: "Users hit", Number: true},
			{Name: "Worst minute", Number: true, rare: true},
			{Name: "Blocked", Number: true, rare: true},
			{Name: "Wait", Number: true, rare: true},
			{Name: "Wasted", Number: true},
		},
	)
	shown := min(len(r.Clients), most)
	for i := range r.Clients[:shown] {
		c := &r.Clients[i]
		t.Rows = append(t.Rows, row{Cells: slices.Concat(
			[]cell{text(c.ClientID), number(c.Requests), number(c.Admitted)},
			outcomes(&c.Counts),
			[]cell{
				part(c.RefusedShare), users(c.UsersHit, c.UsersEstimated), worstMinute(c), seconds(c.LongestBlocked),
				seconds(c.LongestWait), part(c.WastedShare),
			},
		)})
	}
	if left := r.ClientCount - shown; left > 0 {
		t.More = counted(left, "client is", "clients are") + " left out here."
	}
	return t.withoutEmpty()
}

// worstMinute returns a cell that sorts by how many requests were refused in the minute.
func worstMinute(c *simulate.Client) cell {
	m := c.WorstMinute
	if m == nil {
		return nothing
	}
	return cell{
		Text: fmt.Sprintf("%s: %s of %s", m.At.UTC().Format("2006-01-02T15:04Z"), chart.Count(m.Refused), chart.Count(m.Requests)),
		Sort: strconv.FormatUint(m.Refused, 10), Number: true,
	}
}

// WhatIf returns a table of compared limits.
func WhatIf(all []simulate.WhatIf) *Table {
	t := &Table{Caption: "Each limit in place of the default limits"}
	t.Columns = slices.Concat(
		[]column{{Name: "Limit"}, {Name: "Clients hit", Number: true}, {Name: "Users hit", Number: true}},
		outcomeColumns, []column{{Name: "Refused", Number: true}},
	)
	for i := range all {
		w := &all[i]
		limit, clients, counts := text(w.Limit), number(w.ClientsHit), w.Counts
		if w.Found {
			limit.Text += " (found)"
		}
		clients.Text += " of " + chart.Count(w.ClientCount)
		counts.Failed = 0 // as many with any limit
		t.Rows = append(t.Rows, row{Cells: slices.Concat(
			[]cell{limit, clients, users(w.UsersHit, w.UsersEstimated)}, outcomes(&counts), []cell{part(w.RefusedShare)},
		)})
	}
	return t.withoutEmpty()
}

// Outstanding returns a table of at most that many of the clients that need more than a limit.
func Outstanding(t *simulate.Target, most int) *Table {
	shown := t.Outstanding[:min(len(t.Outstanding), most)]
	out := &Table{Caption: "Clients that would have requests refused, highest need first", Sortable: true, Columns: []column{
		{Name: "Client"}, {Name: "Needs", Number: true, Sorted: "descending"}, {Name: "Requests", Number: true},
	}}
	for _, o := range shown {
		out.Rows = append(out.Rows, row{Cells: []cell{text(o.ClientID), number(o.Needs), number(o.Requests)}})
	}
	if left := len(t.Outstanding) - len(shown) + t.MoreOutstanding; left > 0 {
		out.More = counted(left, "client is", "clients are") + " left out here."
	}
	return out
}

func files(all []traffic.File) *Table {
	if len(all) == 0 {
		return nil
	}
	t := &Table{Caption: "Logs", Columns: []column{{Name: "File"}, {Name: "Format"}}}
	for _, f := range all {
		t.Rows = append(t.Rows, row{Cells: []cell{text(f.Name), text(f.Format)}})
	}
	return t
}

func causes(all []traffic.Cause) *Table {
	if len(all) == 0 {
		return nil
	}
	t := &Table{Caption: "Unreadable entries, by cause", Columns: []column{
		{Name: "Cause"}, {Name: "Field"}, {Name: "Entries", Number: true}, {Name: "First"},
	}}
	for _, c := range all {
		t.Rows = append(t.Rows, row{Cells: []cell{text(c.Problem), text(c.Field), number(c.Lines), text(c.First)}})
	}
	return t
}
