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

// leastOf are the units of which the least value is shown: what else runs on the machine makes a latency or a pause
// many times longer, and never shorter.
var leastOf = []string{"p50-µs", "p99-µs", "p999-µs", "good-p99-µs", "gc-pause-µs"}

// value returns the median of the values of a unit, or the least.
func (r *results) value(name, unit string) (float64, bool) {
	all := slices.Sorted(slices.Values(r.values[name][unit]))
	if len(all) == 0 {
		return 0, false
	}
	if slices.Contains(leastOf, unit) {
		return all[0], true
	}
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2, true
}
