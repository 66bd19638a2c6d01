package main

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

// cell returns the cell of a column in the row that begins with these cells, of the first table that has both.
func (o output) cell(column string, row ...string) (string, error) {
	for _, table := range o {
		at := slices.Index(table[0], column)
		for _, cells := range table[1:] {
			if at >= 0 && len(cells) == len(table[0]) && slices.Equal(cells[:len(row)], row) {
				return cells[at], nil
			}
		}
	}
	return "", fmt.Errorf("there is no column %s in a row %v", column, row)
}

// figure reads the number of a cell: 1.5x, 0.01 % or 12.
func figure(cell string) (float64, error) {
	return strconv.ParseFloat(strings.TrimRight(cell, "x %"), 64)
}
