package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"oauth-server/lab/load"
	"oauth-server/lab/page"
	"oauth-server/lab/process"
)

// The bounds of every phase.
const (
	minSuccess = 0.999
	maxP99     = 50 * time.Millisecond
	// The most that memory may grow from the middle third of a phase to its last third: by the factor or by the difference,
	// whichever allows more.
	maxGrowth     = 1.1
	maxGrowthSize = 32 << 20
	// minFlat is the length from which memory is judged: before, a phase still fills the buffers that it needs.
	minFlat = 30 * time.Second
)

// success is the share of good requests that succeeded, 0 without requests.
func (f *figures) success() float64 { return float64(f.Statuses[200]) / float64(max(len(f.Took), 1)) }

// memory returns the highest resident memory in the middle and in the last third of the phase.
func (f *figures) memory() (middle, last int64) {
	n := len(f.used)
	for i, u := range f.used {
		switch {
		case 3*i >= 2*n:
			last = max(last, u.Memory)
		case 3*i >= n:
			middle = max(middle, u.Memory)
		}
	}
	return middle, last
}

// misses lists the bounds that the phase misses.
func (f *figures) misses() (all []string) {
	if share := f.success(); share < minSuccess {
		by := named(f.Statuses)
		delete(by, "200")
		all = append(all, fmt.Sprintf("%.3f %% of requests succeeded, not %.1f %% (%s)", 100*share, 100*minSuccess, outcomes(by)))
	}
	if p99 := load.Percentile(f.Took, 99); p99 >= maxP99 {
		all = append(all, fmt.Sprintf("p99 is %s ms, not below %s ms", ms(p99), ms(maxP99)))
	}
	middle, last := f.memory()
	if f.phase.length >= minFlat && float64(last) > float64(middle)*maxGrowth && last > middle+maxGrowthSize {
		all = append(all, fmt.Sprintf("memory grew from %d to %d MiB", middle>>20, last>>20))
	}
	return all
}

var errMissed = errors.New("a bound was missed")

// verdict says which bounds were missed. It returns an error if any was.
func verdict(all []figures) (string, error) {
	var text strings.Builder
	for i := range all {
		for _, miss := range all[i].misses() {
			fmt.Fprintf(&text, "MISSED in %q: %s\n", all[i].phase.name, miss)
		}
	}
	if text.Len() == 0 {
		return "All bounds are kept.\n", nil
	}
	if len(all[0].misses()) > 0 {
		text.WriteString("Without an attack a bound was missed too: this machine is too slow or too busy for these bounds.\n")
	}
	return text.String(), errMissed
}

// report returns the figures of all phases as tables.
func report(all []figures) string {
	var clients, server [][]string
	attacks := ""
	for i := range all {
		f := &all[i]
		n := len(f.Took)
		p := func(percent float64) string { return ms(load.Percentile(f.Took, percent)) }
		clients = append(clients, []string{
			f.phase.name, fmt.Sprintf("%.0f", f.phase.length.Seconds()), fmt.Sprint(n), fmt.Sprint(n - f.Statuses[200]), fmt.Sprintf("%.3f", 100*f.success()),
			p(50), p(90), p(99), p(99.9), p(100), fmt.Sprintf("%.1f", 100*f.Stalled),
		})
		middle, last := f.memory()
		row := []string{f.phase.name, fmt.Sprint(middle >> 20), fmt.Sprint(last >> 20)}
		for _, cores := range []float64{f.cores.Process + f.cores.Children, f.cores.Waited, f.load, f.cores.Others} {
			row = append(row, fmt.Sprintf("%.2f", cores))
		}
		server = append(server, row)
		for _, kind := range slices.Sorted(maps.Keys(f.attacks)) {
			attacks += fmt.Sprintf("%s: %s: %s\n", f.phase.name, kind, outcomes(f.attacks[kind]))
		}
	}
	return fmt.Sprintf("\n%d good clients with %d requests a second each; %d slow connections; floods of %d requests a second each,\n"+
		"from %d addresses; %s; load average %s\n", goodCount, goodRate, connections, floodRate, addresses, process.Machine(), process.LoadAverage()) +
		"\nGood clients: latency in ms; stalled: the part of the time in which this program did not run.\n\n" +
		page.Markdown([]string{
			"phase", "s", "requests", "failed", "success %", "p50", "p90", "p99", "p99.9", "max", "stalled %",
		}, clients) +
		"\nServer: resident memory in MiB (highest of the middle and of the last third); cores in use\n" +
		"with the processes that hash passwords; waited: how many cores more the server's threads could have used.\n\n" +
		page.Markdown([]string{"phase", "middle", "last", "server", "waited", "this program", "other programs"}, server) +
		"\nAttacks: what came of the requests and connections\n\n" + attacks
}

// ms formats a time in milliseconds.
func ms(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }

// outcomes formats counts, in the order of their names.
func outcomes(counts map[string]int) string {
	parts := make([]string, 0, len(counts))
	for _, outcome := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s x %d", outcome, counts[outcome]))
	}
	return strings.Join(parts, ", ")
}
