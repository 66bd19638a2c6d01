package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// results are the values of each benchmark, by its name and then by unit.
type results struct {
	machine []string // lines of the output that say where it comes from
	values  map[string]map[string][]float64
}

// processors is what the name of a benchmark ends with if it has more than one.
var processors = regexp.MustCompile(`-(\d+)$`)

// parse reads the output of go test -bench. Of a benchmark that ran with -cpu, the name has cores=N in place of the
// suffix.
func parse(text string) *results {
	r := &results{values: map[string]map[string][]float64{}}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "# "):
			r.machine = append(r.machine, strings.TrimSpace(line[2:]))
		case strings.HasPrefix(line, "Benchmark") && len(fields) >= 4:
			r.add(fields[0], fields[2:])
		}
	}
	return r
}

func (r *results) add(name string, values []string) {
	name = strings.TrimPrefix(name, "Benchmark")
	cores := "1"
	if m := processors.FindStringSubmatch(name); m != nil {
		cores, name = m[1], strings.TrimSuffix(name, m[0])
	}
	if strings.HasPrefix(name, "Decision") {
		name += "/cores=" + cores
	}
	if r.values[name] == nil {
		r.values[name] = map[string][]float64{}
	}
	for pair := range slices.Chunk(values, 2) {
		if v, err := strconv.ParseFloat(pair[0], 64); err == nil && len(pair) == 2 {
			r.values[name][pair[1]] = append(r.values[name][pair[1]], v)
		}
	}
}

// latencies are units of which the least value is shown: whatever else uses the processor of the server or that of the
// load generator makes them many times longer.
var latencies = []string{"p50-µs", "p99-µs", "p999-µs", "good-p99-µs"}

// value returns the value of a unit that stands for all runs: the median, or the least latency.
func (r *results) value(name, unit string) (float64, bool) {
	all := r.values[name][unit]
	if len(all) == 0 {
		return 0, false
	}
	if slices.Contains(latencies, unit) {
		return slices.Min(all), true
	}
	all = slices.Sorted(slices.Values(all))
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2, true
}
