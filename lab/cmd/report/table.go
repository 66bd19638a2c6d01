package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"oauth-server/lab/benchmark"
	"oauth-server/lab/page"
)

// ours is the label of our own figures.
const ours = "ours"

// row is one line of the table: our figure beside the figures of others.
type row struct {
	about  string
	unit   string // of the benchmarks' output
	shown  string // how the unit is called
	more   bool   // more is better
	format string // makes the name of a benchmark from a label
	ours   string // name of our benchmark; empty: format with the label ours
	// others are the labels of benchmarks that ours is compared with. A label can be followed by = and the name of the
	// benchmark. In parentheses it is a reference: shown, and not one that ours competes with.
	others []string
}

// name returns the label of another benchmark, its name, and whether it is a reference.
func (w *row) name(other string) (label, name string, reference bool) {
	label, name, named := strings.Cut(other, "=")
	label, reference = strings.CutPrefix(strings.TrimSuffix(label, ")"), "(")
	if !named {
		name = fmt.Sprintf(w.format, label)
	}
	return label, name, reference
}

// results are those of benchmarks, and the lines of their output that say where it comes from.
type results struct {
	benchmark.Results
	machine []string
}

func parse(text string) *results {
	r := &results{Results: benchmark.Parse(text)}
	for line := range strings.Lines(text) {
		if machine, found := strings.CutPrefix(line, "# "); found {
			r.machine = append(r.machine, strings.TrimSpace(machine))
		}
	}
	return r
}

// latencies are units that are shown by their least value: other programs on either processor make them many times
// longer.
var latencies = []string{"p50-µs", "p99-µs", "p999-µs", "good-p99-µs"}

// value returns the value of a unit that stands for all runs: the median, or the least latency.
func (r *results) value(name, unit string) (float64, bool) {
	all := r.Results[name][unit]
	if len(all) == 0 {
		return 0, false
	}
	if slices.Contains(latencies, unit) {
		return slices.Min(all), true
	}
	return benchmark.Median(all), true
}

// table returns all rows in plain text. A benchmark that has not run is an error: without a peer, ours looks better.
func (r *results) table(rows []row) (string, error) {
	var missing []error
	lines := [][]string{{"what", "unit", "ours", "others", "ours ÷ the best of them"}}
	for i := range rows {
		line, err := r.line(&rows[i])
		missing = append(missing, err)
		lines = append(lines, line)
	}
	return strings.Join(r.machine, "\n") + "\n\n" + page.Table(lines), errors.Join(missing...)
}

// figure is a value with the label of its column.
type figure struct {
	label     string
	value     float64
	reference bool
}

// figures returns the values of a row, ours first.
func (r *results) figures(w *row) ([]figure, error) {
	own := w.ours
	if own == "" {
		own = fmt.Sprintf(w.format, ours)
	}
	all := []figure{{label: ours}}
	names := []string{own}
	for _, other := range w.others {
		label, name, reference := w.name(other)
		all, names = append(all, figure{label: label, reference: reference}), append(names, name)
	}
	for i, name := range names {
		v, ok := r.value(name, w.unit)
		if !ok {
			return nil, fmt.Errorf("there is no %s of %s", w.unit, name)
		}
		all[i].value = v
	}
	return all, nil
}

func (r *results) line(w *row) ([]string, error) {
	all, err := r.figures(w)
	if err != nil {
		return nil, err
	}
	var shown []string
	for _, f := range all[1:] {
		cell := f.label + " " + page.Number(f.value)
		if f.reference {
			cell = "(" + cell + ")"
		}
		shown = append(shown, cell)
	}
	best, found := best(all[1:], w.more)
	return []string{w.about, w.shown, page.Number(all[0].value), strings.Join(shown, ", "), ratio(all[0].value, best, found, w.more)}, nil
}

// best returns the best value that is no reference, if there is one.
func best(all []figure, more bool) (best float64, found bool) {
	for _, f := range all {
		if !f.reference && (!found || f.value < best != more) {
			best, found = f.value, true
		}
	}
	return best, found
}

// ratio shows how ours compares with the best other, and whether that is ahead.
func ratio(ours, best float64, found, more bool) string {
	switch {
	case !found:
		return ""
	case ours == best:
		return "equal"
	case best == 0:
		return "behind"
	}
	text := page.Number(ours/best) + " ×"
	if ours > best != more {
		return text + ", behind"
	}
	return text
}
