package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"oauth-server/lab/benchmark"
	"oauth-server/lab/page"
	"oauth-server/lab/process"
)

// measureFamilies runs benchmarks of the stores, because a million sign-ins over HTTP take hours.
func measureFamilies(ctx context.Context, w *world) error {
	families := fmt.Sprintf("-families=1000,%d", w.sizes.families)
	if err := w.bench(ctx, "families/embedded/", "./internal/store/bolt", "ScaleFamilies", "1x", families); err != nil {
		return err
	}
	rotations := fmt.Sprintf("-refreshes=%d", w.sizes.rotations)
	if err := w.bench(ctx, "families/embedded/", "./internal/store/bolt", "ScaleRefreshes", "1x", rotations); err != nil {
		return err
	}
	for _, n := range []int{1000, w.sizes.documents} {
		name := fmt.Sprintf("families/mongodb/%d/", n)
		if err := w.bench(ctx, name, "./internal/store/mongo", "RotateFamily", "5000x", "-families="+strconv.Itoa(n)); err != nil {
			return err
		}
	}
	return nil
}

// bench runs a benchmark, and takes all that it reports.
func (w *world) bench(ctx context.Context, name, pkg, bench, times, flag string) error {
	began := time.Now()
	out, err := process.Run(ctx, "..", "", "env", "MONGODB_TEST_URI="+w.uri, "TMPDIR="+w.dir,
		"go", "test", "-run=^$", "-bench="+bench+"$", "-benchtime="+times, "-timeout=60m", pkg, flag)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	found := benchmark.Parse(string(out))
	if len(found) == 0 {
		return fmt.Errorf("%s has no results:\n%s", bench, out)
	}
	for of, metrics := range found {
		_, of, _ = strings.Cut(of+"/", "/") // such as families=1000/, or nothing
		for metric, values := range metrics {
			w.figures[name+of+metric] = values[0]
		}
	}
	fmt.Printf("  %s %s %s: %s\n", name, bench, flag, time.Since(began).Round(time.Second))
	return nil
}

func familyTables(w *world) string {
	microseconds := unit("µs")
	const refreshed = "families/embedded/"
	return "\nThe embedded file, by live sign-ins:\n\n" +
		w.figures.table("sign-ins", []column{
			{"bytes per sign-in", "file-B/family", unit("B")},
			{"opening", "open-ms", unit("ms")},
			{"refresh, p50", "p50-µs", microseconds},
			{"p99", "p99-µs", microseconds},
			{"sweep, per due record", "sweep-µs/entry", microseconds},
		}, rowsOf([]int{1000, w.sizes.families}, "families/embedded/families=%d/")) +
		"\nThe embedded file, a thousand sign-ins, by refreshes:\n\n" +
		page.Table([][]string{
			{"after refreshes", "file in use", "refresh, p50", "p99"},
			w.refreshedRow("1,000", refreshed+"file-B-before", refreshed+"first-"),
			w.refreshedRow(page.Number(w.figures[refreshed+"refreshes"]), refreshed+"file-B-after", refreshed+"last-"),
		}) +
		"\nMongoDB's stand-in, by live sign-ins:\n\n" +
		w.figures.table("sign-ins", []column{
			{"document size", "B/document", unit("B")},
			{"commands per refresh", "commands/op", page.Number},
			{"new documents per refresh", "documents/op", page.Number},
			{"refresh, p50", "p50-µs", microseconds},
			{"p99", "p99-µs", microseconds},
		}, rowsOf([]int{1000, w.sizes.documents}, "families/mongodb/%d/"))
}

func (w *world) refreshedRow(label, file, times string) []string {
	f := w.figures
	return []string{label, kibi(f[file]), unit("µs")(f[times+"p50-µs"]), unit("µs")(f[times+"p99-µs"])}
}
