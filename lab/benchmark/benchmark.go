// Package benchmark reads the results of go test -bench.
package benchmark

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Results are the values of each benchmark, by its name without "Benchmark", and then by unit.
type Results map[string]map[string][]float64

// processors is what the name of a benchmark ends with if it has more than one.
var processors = regexp.MustCompile(`-(\d+)$`)

// Parse reads the output. Of a decision, which runs with -cpu, the name has cores=N in place of the suffix.
func Parse(text string) Results {
	r := Results{}
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); strings.HasPrefix(line, "Benchmark") && len(fields) >= 4 {
			r.add(strings.TrimPrefix(fields[0], "Benchmark"), fields[2:])
		}
	}
	return r
}

func (r Results) add(name string, values []string) {
	cores := "1"
	if m := processors.FindStringSubmatch(name); m != nil {
		cores, name = m[1], strings.TrimSuffix(name, m[0])
	}
	if strings.HasPrefix(name, "Decision") {
		name += "/cores=" + cores
	}
	if r[name] == nil {
		r[name] = map[string][]float64{}
	}
	for pair := range slices.Chunk(values, 2) {
		if v, err := strconv.ParseFloat(pair[0], 64); err == nil && len(pair) == 2 {
			r[name][pair[1]] = append(r[name][pair[1]], v)
		}
	}
}

// Median returns the median; 0 of no values.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values)) // NaN first
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
