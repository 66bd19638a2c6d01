package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// column shows one value of each row.
type column struct {
	title, metric string
	show          func(v float64) string
}

// row is one line of a table: what it is about, and the name that its values begin with.
type row struct {
	labels  []string
	figures *figures
	prefix  string
}

// table returns a table in Markdown. A row that has a note shows that in place of its values.
func table(labels []string, columns []column, rows []row) string {
	var b strings.Builder
	heads := labels
	for _, c := range columns {
		heads = append(heads[:len(heads):len(heads)], c.title)
	}
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(heads)
	b.WriteString(strings.Repeat("|---", len(heads)) + "|\n")
	for _, r := range rows {
		cells := r.labels
		for i, c := range columns {
			cells = append(cells[:len(cells):len(cells)], r.cell(c, i == 0))
		}
		line(cells)
	}
	return b.String()
}

func (r *row) cell(c column, first bool) string {
	if why, ok := r.figures.Notes[r.prefix]; ok && first {
		return why
	}
	if v, ok := r.figures.Values[r.prefix+c.metric]; ok {
		return c.show(v)
	}
	return "–"
}

// both returns a row for the release before and one for this one.
func both(label, prefix string, old, now *figures) []row {
	return []row{{[]string{label, "before"}, old, prefix}, {[]string{label, "now"}, now, prefix}}
}

// number shows a whole number with commas, and one below ten with the digits that matter.
func number(v float64) string {
	switch {
	case math.Abs(v) < 0.005:
		return "0"
	case math.Abs(v) < 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case math.Abs(v) < 10:
		return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
	}
	return commas(int64(math.Round(v)))
}

func commas(n int64) string {
	if n < 0 {
		return "−" + commas(-n)
	}
	if n < 1000 {
		return strconv.FormatInt(n, 10)
	}
	return commas(n/1000) + fmt.Sprintf(",%03d", n%1000)
}

func unit(name string) func(float64) string {
	return func(v float64) string { return number(v) + " " + name }
}
