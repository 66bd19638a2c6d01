package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"oauth-server/lab/benchmark"
	"oauth-server/lab/page"
)

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

// table returns the table in Markdown. A benchmark that has not run is an error: without a peer, ours looks better.
func (r *results) table(rows []row) (string, error) {
	var b strings.Builder
	var missing []error
	for _, line := range r.machine {
		b.WriteString(line + "\n")
	}
	b.WriteString("\n| what | unit | ours | others | ours ÷ the best of them |\n|---|---|---|---|---|\n")
	for i := range rows {
		line, err := r.line(&rows[i])
		missing = append(missing, err)
		b.WriteString(line)
	}
	return b.String(), errors.Join(missing...)
}

func (r *results) line(w *row) (string, error) {
	own := w.ours
	if own == "" {
		own = fmt.Sprintf(w.format, "ours")
	}
	ours, ok := r.value(own, w.unit)
	if !ok {
		return "", fmt.Errorf("there is no %s of %s", w.unit, own)
	}
	var shown []string
	best, found := 0.0, false
	for _, other := range w.others {
		label, name, reference := w.name(other)
		v, ok := r.value(name, w.unit)
		if !ok {
			return "", fmt.Errorf("there is no %s of %s", w.unit, name)
		}
		cell := label + " " + page.Number(v)
		if reference {
			cell = "(" + cell + ")"
		} else if better := v < best != w.more; !found || better && v != best {
			best, found = v, true
		}
		shown = append(shown, cell)
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n", w.about, w.shown, page.Number(ours), strings.Join(shown, ", "), ratio(ours, best, found, w.more)), nil
}

// ratio shows how ours compares with the best other. Where that is ahead, it is in bold type.
func ratio(ours, best float64, found, more bool) string {
	switch {
	case !found:
		return ""
	case ours == best:
		return "equal"
	case best == 0:
		return "**more**"
	}
	text := page.Number(ours/best) + " ×"
	if behind := ours > best; behind != more && ours != best {
		return "**" + text + "**"
	}
	return text
}
