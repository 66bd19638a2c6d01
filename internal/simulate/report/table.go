package report

import (
	"fmt"
	"strconv"

	"oauth-server/internal/simulate"
	"oauth-server/internal/simulate/traffic"
)

// table is a table of the page. The first cell of a row names the row.
type table struct {
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
	return cell{Text: count(n), Sort: strconv.FormatInt(int64(n), 10), Number: true}
}

func part(share float64) cell {
	return cell{Text: Percent(share), Sort: strconv.FormatFloat(share, 'g', -1, 64), Number: true}
}

func seconds(s simulate.Seconds) cell {
	return cell{Text: duration(s), Sort: strconv.FormatFloat(float64(s), 'g', -1, 64), Number: true}
}

func (c cell) alarm(set bool) cell {
	c.Alarm = set
	return c
}

// maxClients is the maximum number of rows in the table of clients: a page with more is slow in a
// browser.
const maxClients = 1000

// clients returns the table of clients. It leaves out columns without any events.
func clients(r *simulate.Result) *table {
	t := &table{Caption: "Clients, those of which most was refused first", Sortable: true}
	all := []struct {
		column
		used bool
		cell func(c *simulate.Client) cell
	}{
		{column{Name: "Client"}, true, func(c *simulate.Client) cell { return text(c.ClientID) }},
		{column{Name: "Requests", Number: true}, true, func(c *simulate.Client) cell { return number(c.Requests) }},
		{column{Name: "Admitted", Number: true}, true, func(c *simulate.Client) cell { return number(c.Admitted) }},
		{column{Name: "Denied", Number: true}, true, func(c *simulate.Client) cell { return number(c.Denied).alarm(c.Denied > 0) }},
		{column{Name: "Banned", Number: true}, r.Total.Banned > 0, func(c *simulate.Client) cell { return number(c.Banned).alarm(c.Banned > 0) }},
		{column{Name: "Delayed", Number: true}, r.Total.Delayed > 0, func(c *simulate.Client) cell { return number(c.Delayed) }},
		{column{Name: "Reused", Number: true}, r.Total.Reused > 0, func(c *simulate.Client) cell { return number(c.Reused) }},
		{column{Name: "Failed", Number: true}, r.Total.Failed > 0, func(c *simulate.Client) cell { return number(c.Failed) }},
		{column{Name: "Refused", Number: true}, true, func(c *simulate.Client) cell { return part(c.RefusedShare) }},
		{column{Name: "Users hit", Number: true}, true, func(c *simulate.Client) cell {
			users := number(c.UsersHit)
			users.Text = about(c.UsersHit, c.UsersEstimated)
			return users
		}},
		{column{Name: "Worst minute", Number: true}, true, worstMinute},
		{column{Name: "Longest blocked", Number: true}, true, func(c *simulate.Client) cell { return seconds(c.LongestBlocked) }},
		{column{Name: "Longest wait", Number: true}, true, func(c *simulate.Client) cell { return seconds(c.LongestWait) }},
		{column{Name: "Waste", Number: true}, true, func(c *simulate.Client) cell { return part(c.WastedShare) }},
	}
	for _, c := range all {
		if c.used {
			t.Columns = append(t.Columns, c.column)
		}
	}
	shown := min(len(r.Clients), maxClients)
	for i := range r.Clients[:shown] {
		var cells []cell
		for _, c := range all {
			if c.used {
				cells = append(cells, c.cell(&r.Clients[i]))
			}
		}
		t.Rows = append(t.Rows, row{Cells: cells})
	}
	if left := r.ClientCount - shown; left > 0 {
		t.More = counted(left, "client is", "clients are") + " left out here."
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

// worstMinute returns a cell that sorts by how many requests were refused in the minute.
func worstMinute(c *simulate.Client) cell {
	m := c.WorstMinute
	if m == nil {
		return cell{Text: "—", Sort: "0", Number: true}
	}
	return cell{
		Text:   fmt.Sprintf("%s\u00a0of\u00a0%s, %s", count(m.Refused), count(m.Requests), m.At.UTC().Format("2\u00a0Jan\u00a015:04")),
		Sort:   strconv.FormatUint(m.Refused, 10),
		Number: true,
	}
}

func files(all []traffic.File) *table {
	if len(all) == 0 {
		return nil
	}
	t := &table{Caption: "Logs", Columns: []column{{Name: "File"}, {Name: "Format"}}}
	for _, f := range all {
		t.Rows = append(t.Rows, row{Cells: []cell{text(f.Name), text(f.Format)}})
	}
	return t
}

func causes(all []traffic.Cause) *table {
	if len(all) == 0 {
		return nil
	}
	t := &table{Caption: "Entries that could not be read, by cause", Columns: []column{
		{Name: "Cause"}, {Name: "Field"}, {Name: "Entries", Number: true}, {Name: "First"},
	}}
	for _, c := range all {
		t.Rows = append(t.Rows, row{Cells: []cell{text(c.Problem), text(c.Field), number(c.Lines), text(c.First)}})
	}
	return t
}
