package page

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Table returns rows of cells as plain text, with two spaces between the columns. An empty cell is shown as -.
func Table(rows [][]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := slices.Clone(row)
		for i := range cells {
			if cells[i] == "" {
				cells[i] = "-"
			}
		}
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) // to memory
	}
	_ = w.Flush()
	return b.String()
}

// Tables are the tables of a text, in order.
type Tables []titled

type titled struct {
	title string     // the last line before the table that belongs to no table
	rows  [][]string // the first one has the headings
}

var apart = regexp.MustCompile(` {2,}`)

// Parse reads tables as [Table] writes them: lines of at least three cells, ended by another line.
func Parse(text string) (all Tables) {
	title, inTable := "", false
	for line := range strings.Lines(text) {
		cells := apart.Split(strings.TrimSpace(line), -1)
		switch {
		case len(cells) < 3:
			inTable = false
			if cells[0] != "" {
				title = cells[0]
			}
			continue
		case !inTable:
			inTable = true
			all = append(all, titled{title: title})
		}
		last := &all[len(all)-1]
		last.rows = append(last.rows, cells)
	}
	return all
}

// Cell finds a cell by its column and the first cells of its row; "*" is any cell. It looks in the tables with the given text
// in their title, in order. If several rows match, such as those of several seeds, it returns their mean.
func (all Tables) Cell(title, column string, row ...string) (string, error) {
	for _, table := range all {
		at := slices.Index(table.rows[0], column)
		if at < 0 || !strings.Contains(table.title, title) {
			continue
		}
		var found []string
		for _, cells := range table.rows[1:] {
			if beginsWith(cells, row) && at < len(cells) {
				found = append(found, cells[at])
			}
		}
		if len(found) > 0 {
			return mean(found)
		}
	}
	return "", fmt.Errorf("there is no column %s in a row %v of a table %q", column, row, title)
}

func beginsWith(cells, row []string) bool {
	for i, want := range row {
		if i >= len(cells) || want != "*" && want != cells[i] {
			return false
		}
	}
	return true
}

// mean returns the mean of cells of one kind.
func mean(cells []string) (string, error) {
	if len(cells) == 1 {
		return cells[0], nil
	}
	sum := 0.0
	for _, cell := range cells {
		f, err := Figure(cell)
		if err != nil {
			return "", err
		}
		sum += f
	}
	text := strconv.FormatFloat(sum/float64(len(cells)), 'g', 2, 64)
	if strings.HasSuffix(cells[0], " %") {
		text += " %"
	}
	return text, nil
}

// Figure reads the number of a cell: 1.5x, 0.01 % or 12.
func Figure(cell string) (float64, error) {
	return strconv.ParseFloat(strings.TrimRight(cell, "x %"), 64)
}
