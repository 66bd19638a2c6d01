package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/lab/load"
	"oauth-server/lab/process"
)

// report returns the figures of all phases as tables.
func report(o options, all []figures) string {
	w := &strings.Builder{}
	store := "the embedded store"
	if o.mongoDB != "" {
		store = "MongoDB"
	}
	fmt.Fprintf(w, "\n%d good clients with %d requests a second each; %d slow connections; floods of %d requests a second each,\n"+
		"from %d addresses; %s; %s; load average %s\n",
		goodCount, goodRate, connections, floodRate, addresses, store, process.Machine(), process.LoadAverage())

	fmt.Fprint(w, "\nGood clients: latency in ms (cc: client_credentials).\n"+
		"Noise of the machine: late is how late timers fired, disk how long it took to sync a page.\n\n")
	table(w, []string{"phase", "s", "requests", "failed", "success %", "p50", "p90", "p99", "p99.9", "max", "p99 cc", "p99 refresh", "late p99", "late max", "disk p99"},
		all, func(f *figures) []string {
			failed, _ := f.failures()
			took := f.latencies("")
			late, syncs := slices.Sorted(slices.Values(f.late)), slices.Sorted(slices.Values(f.syncs))
			return []string{
				f.phase.name, fmt.Sprintf("%.0f", f.phase.length.Seconds()), fmt.Sprint(len(f.good)), fmt.Sprint(failed),
				fmt.Sprintf("%.3f", 100*f.success()),
				ms(load.Percentile(took, 50)), ms(load.Percentile(took, 90)), ms(load.Percentile(took, 99)), ms(load.Percentile(took, 99.9)), ms(load.Percentile(took, 100)),
				ms(load.Percentile(f.latencies(clientcfg.ClientCredentials), 99)), ms(load.Percentile(f.latencies(clientcfg.RefreshToken), 99)),
				ms(load.Percentile(late, 99)), ms(load.Percentile(late, 100)), ms(load.Percentile(syncs, 99)),
			}
		})

	fmt.Fprint(w, "\nServer: resident memory in MiB (highest of the middle and of the last third), most goroutines and open files;\n"+
		"garbage collections a second and the mean pause in ms; cores in use; waited: how many cores more the server's threads could have used.\n\n")
	table(w, []string{"phase", "middle", "last", "goroutines", "files", "GC/s", "pause", "server", "waited", "attackers", "good clients", "other programs"},
		all, func(f *figures) []string {
			middle, last := f.memory()
			goroutines, files := f.most()
			collections, pause := f.collected()
			cores := func(n float64) string { return fmt.Sprintf("%.2f", n) }
			return []string{
				f.phase.name, fmt.Sprint(middle >> 20), fmt.Sprint(last >> 20), fmt.Sprint(goroutines), fmt.Sprint(files),
				fmt.Sprintf("%.1f", collections), ms(pause), cores(f.cores.server), cores(f.cores.waited), cores(f.cores.attackers), cores(f.cores.self), cores(f.cores.others),
			}
		})

	fmt.Fprint(w, "\nAttacks: what came of the requests and connections\n\n")
	for _, f := range all {
		for _, kind := range slices.Sorted(maps.Keys(f.attacks)) {
			fmt.Fprintf(w, "%s: %s: %s\n", f.phase.name, kind, outcomes(f.attacks[kind]))
		}
	}
	return w.String()
}

// table prints one row for each phase, numbers to the right.
func table(w *strings.Builder, header []string, all []figures, row func(*figures) []string) {
	text := strings.Join(header, "\t") + "\t\n"
	for i := range all {
		text += strings.Join(row(&all[i]), "\t") + "\t\n"
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = t.Write([]byte(text)) // a strings.Builder takes everything
	_ = t.Flush()
}

// ms formats a time in milliseconds.
func ms(d time.Duration) string {
	return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000)
}

// outcomes formats counts, in the order of their names.
func outcomes(counts map[string]int) string {
	parts := make([]string, 0, len(counts))
	for _, outcome := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s x %d", outcome, counts[outcome]))
	}
	return strings.Join(parts, ", ")
}
