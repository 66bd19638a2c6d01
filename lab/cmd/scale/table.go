package main

import (
	"fmt"

	"oauth-server/lab/page"
)

// column shows one value of each row.
type column struct {
	title, metric string
	show          func(v float64) string
}

// row is one line of a table: what it is about, and the name that its values begin with.
type row struct{ label, prefix string }

// table returns a table in plain text.
func (f figures) table(label string, columns []column, rows []row) string {
	heads := []string{label}
	for _, c := range columns {
		heads = append(heads, c.title)
	}
	lines := [][]string{heads}
	for _, r := range rows {
		cells := []string{r.label}
		for _, c := range columns {
			cell := "–"
			if v, ok := f[r.prefix+c.metric]; ok {
				cell = c.show(v)
			}
			cells = append(cells, cell)
		}
		lines = append(lines, cells)
	}
	return page.Table(lines)
}

// rowsOf returns a row for each number. The format makes the beginning of its names.
func rowsOf(numbers []int, format string) (rows []row) {
	for _, n := range numbers {
		rows = append(rows, row{page.Number(float64(n)), fmt.Sprintf(format, n)})
	}
	return rows
}

func unit(name string) func(float64) string {
	return func(v float64) string { return page.Number(v) + " " + name }
}

// bytesIn shows bytes in a larger unit.
func bytesIn(name string, size float64) func(float64) string {
	return func(v float64) string { return page.Number(v/size) + " " + name }
}

var (
	kibi = bytesIn("KiB", 1<<10)
	mebi = bytesIn("MiB", 1<<20)
)

// seconds shows times below a tenth of a second in milliseconds.
func seconds(v float64) string {
	if v < 0.1 {
		return page.Number(1000*v) + " ms"
	}
	return page.Number(v) + " s"
}

// costOfStart are the columns of what a start costs.
func costOfStart() []column {
	return []column{
		{"start", "start", seconds},
		{"processor", "startProcessor", seconds},
		{"peak", "peak", mebi},
	}
}
