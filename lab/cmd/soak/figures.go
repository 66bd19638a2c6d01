package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/lab/load"
)

// The bounds of every phase.
const (
	minSuccess = 0.999
	maxP99     = 50 * time.Millisecond
	// The most that memory may grow from the middle third of a phase to its last third: by the
	// factor or by the difference, whichever allows more.
	maxGrowth     = 1.1
	maxGrowthSize = 32 << 20
	// minFlat is the length from which memory is judged: before, a phase still fills the buffers
	// that it needs.
	minFlat = 30 * time.Second
)

// latencies returns the sorted latencies of the requests with the grant, or of all without one.
// Failures are among them: a quick refusal does not make a client wait less.
func (f *figures) latencies(grant clientcfg.Grant) []time.Duration {
	var all []time.Duration
	for i := range f.good {
		if grant == "" || f.good[i].grant == grant {
			all = append(all, f.good[i].took)
		}
	}
	slices.Sort(all)
	return all
}

// failures counts the requests that did not succeed, by outcome.
func (f *figures) failures() (n int, by map[string]int) {
	by = map[string]int{}
	for i := range f.good {
		if !f.good[i].succeeded() {
			n++
			by[f.good[i].outcome]++
		}
	}
	return n, by
}

// success is the share of requests that succeeded, 0 without requests.
func (f *figures) success() float64 {
	if len(f.good) == 0 {
		return 0
	}
	n, _ := f.failures()
	return 1 - float64(n)/float64(len(f.good))
}

// memory returns the highest resident memory in the middle and in the last third of the phase.
func (f *figures) memory() (middle, last int64) {
	n := len(f.samples)
	for i, s := range f.samples {
		switch {
		case 3*i >= 2*n:
			last = max(last, s.rss)
		case 3*i >= n:
			middle = max(middle, s.rss)
		}
	}
	return middle, last
}

// flat reports whether the growth is within the bound.
func flat(middle, last int64) bool {
	return float64(last) <= float64(middle)*maxGrowth || last <= middle+maxGrowthSize
}

// most returns the highest number of goroutines and of open files in the phase.
func (f *figures) most() (goroutines, files int) {
	for _, s := range f.samples {
		goroutines, files = max(goroutines, s.goroutines), max(files, s.files)
	}
	return goroutines, files
}

// collected returns the garbage collections per second of the phase, and how long one paused the
// server on average.
func (f *figures) collected() (perSecond float64, pause time.Duration) {
	if len(f.samples) < 2 {
		return 0, 0
	}
	first, last := f.samples[0], f.samples[len(f.samples)-1]
	n := last.collections - first.collections
	if n <= 0 {
		return 0, 0
	}
	return float64(n) / float64(len(f.samples)-1), (last.paused - first.paused) / time.Duration(n)
}

// misses lists the bounds that the phase misses.
func (f *figures) misses() (all []string) {
	if share := f.success(); share < minSuccess {
		_, by := f.failures()
		all = append(all, fmt.Sprintf("%.3f %% of requests succeeded, not %.1f %% (%s)", 100*share, 100*minSuccess, outcomes(by)))
	}
	if p99 := load.Percentile(f.latencies(""), 99); p99 >= maxP99 {
		all = append(all, fmt.Sprintf("p99 is %s ms, not below %s ms", ms(p99), ms(maxP99)))
	}
	if middle, last := f.memory(); f.phase.length >= minFlat && !flat(middle, last) {
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
