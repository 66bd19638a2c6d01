package accuracy

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// output is the tables of a command, in the order in which it prints them.
type output [][][]string

var apart = regexp.MustCompile(` {2,}`)

// parse reads tables: lines of cells that are two spaces apart, ended by an empty line.
func parse(text string) (all output) {
	var table [][]string
	for line := range strings.Lines(text + "\n") {
		cells := apart.Split(strings.TrimSpace(line), -1)
		switch {
		case len(cells) > 2:
			table = append(table, cells)
		case table != nil:
			all, table = append(all, table), nil
		}
	}
	return all
}

// cell returns the cell of a column in the row that has these cells, of the first table that has both. If there are several
// such rows, as of several seeds, it is their mean.
func (o output) cell(column string, row ...string) (string, error) {
	for _, table := range o {
		at, found := slices.Index(table[0], column), []string(nil)
		for _, cells := range table[1:] {
			has := func(cell string) bool { return slices.Contains(cells, cell) }
			if at >= 0 && len(cells) == len(table[0]) && !slices.ContainsFunc(row, func(cell string) bool { return !has(cell) }) {
				found = append(found, cells[at])
			}
		}
		if len(found) > 0 {
			return mean(found)
		}
	}
	return "", fmt.Errorf("there is no column %s in a row %v", column, row)
}

// mean returns the mean of cells of one kind.
func mean(cells []string) (string, error) {
	if len(cells) == 1 {
		return cells[0], nil
	}
	sum := 0.0
	for _, cell := range cells {
		f, err := figure(cell)
		if err != nil {
			return "", err
		}
		sum += f
	}
	sum /= float64(len(cells))
	if strings.HasSuffix(cells[0], " %") {
		return strconv.FormatFloat(sum, 'g', 2, 64) + " %", nil
	}
	return strconv.FormatFloat(sum, 'g', 2, 64), nil
}

// figure reads the number of a cell: 1.5x, 0.01 % or 12.
func figure(cell string) (float64, error) {
	return strconv.ParseFloat(strings.TrimRight(cell, "x %"), 64)
}
