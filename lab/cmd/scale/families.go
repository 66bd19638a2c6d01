package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// measureFamilies runs benchmarks of the stores, because a million sign-ins over HTTP take hours.
func measureFamilies(ctx context.Context, w *world, r *release) error {
	families := fmt.Sprintf("-families=1000,%d", w.sizes.families)
	if err := w.bench(ctx, r, "families/embedded/", "./internal/store/bolt", "ScaleFamilies", "1x", families); err != nil {
		return err
	}
	rotations := fmt.Sprintf("-refreshes=%d", w.sizes.rotations)
	if err := w.bench(ctx, r, "families/embedded/", "./internal/store/bolt", "ScaleRefreshes", "1x", rotations); err != nil {
		return err
	}
	for _, n := range []int{1000, w.sizes.documents} {
		name := fmt.Sprintf("families/mongodb/%d/", n)
		if err := w.bench(ctx, r, name, "./internal/store/mongo", "RotateFamily", "5000x", "-families="+strconv.Itoa(n)); err != nil {
			return err
		}
	}
	return nil
}

// bench runs a benchmark, and takes all that it reports.
func (w *world) bench(ctx context.Context, r *release, name, pkg, bench, times, flag string) error {
	began := time.Now()
	args := []string{"test", "-run=^$", "-bench=" + bench + "$", "-benchtime=" + times, "-timeout=60m", pkg, flag}
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // G204: fixed arguments
	cmd.Dir, cmd.Env = w.root, append(os.Environ(), "MONGODB_TEST_URI="+w.uri, "TMPDIR="+w.dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	found, err := parseBench(string(out))
	for benchmark, metrics := range found {
		for metric, value := range metrics {
			r.figures.set(name+benchmark+metric, value)
		}
	}
	fmt.Printf("  %s %s %s: %s\n", name, bench, flag, time.Since(began).Round(time.Second))
	return err
}

var errNoBenchmark = errors.New("no result of a benchmark")

// parseBench reads the results of benchmarks. Their names are what follows the first slash, such as
// families=1000/, or nothing.
func parseBench(out string) (map[string]map[string]float64, error) {
	found := map[string]map[string]float64{}
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		_, name, sub := strings.Cut(fields[0], "/")
		if sub {
			name = name[:strings.LastIndexByte(name+"-", '-')]
			name, _, _ = strings.Cut(name, "-") // the number of processors
			name += "/"
		}
		metrics := map[string]float64{}
		for i := 2; i+1 < len(fields); i += 2 {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("%w: %s", errNoBenchmark, line)
			}
			metrics[fields[i+1]] = v
		}
		found[name] = metrics
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w:\n%s", errNoBenchmark, out)
	}
	return found, nil
}

func familyTables(w *world, _, now *figures) string {
	microseconds := unit("µs")
	var alive, documents []row
	for _, n := range []int{1000, w.sizes.families} {
		alive = append(alive, row{[]string{commas(int64(n))}, now, fmt.Sprintf("families/embedded/families=%d/", n)})
	}
	for _, n := range []int{1000, w.sizes.documents} {
		documents = append(documents, row{[]string{commas(int64(n))}, now, fmt.Sprintf("families/mongodb/%d/", n)})
	}
	const refreshed = "families/embedded/"
	return "\nThe embedded file, by sign-ins that are alive:\n\n" +
		table([]string{"sign-ins"}, []column{
			{"bytes for each", "file-B/family", unit("B")},
			{"opening", "open-ms", unit("ms")},
			{"refresh, p50", "p50-µs", microseconds},
			{"p99", "p99-µs", microseconds},
			{"sweep, for each that is due", "sweep-µs/entry", microseconds},
		}, alive) +
		"\nThe embedded file, a thousand sign-ins, by refreshes that were made of them:\n\n" +
		table([]string{"after refreshes"}, []column{
			{"file in use", "file-B", func(v float64) string { return number(v/1024) + " KiB" }},
			{"refresh, p50", "p50-µs", microseconds},
			{"p99", "p99-µs", microseconds},
		}, []row{
			{[]string{"1,000"}, refreshedAs(now, refreshed, "first-", "before"), ""},
			{[]string{commas(int64(now.Values[refreshed+"refreshes"]))}, refreshedAs(now, refreshed, "last-", "after"), ""},
		}) +
		"\nMongoDB's stand-in, by sign-ins that are alive:\n\n" +
		table([]string{"sign-ins"}, []column{
			{"bytes of the document", "B/document", unit("B")},
			{"commands for a refresh", "commands/op", number},
			{"documents that a refresh adds", "documents/op", number},
			{"refresh, p50", "p50-µs", microseconds},
			{"p99", "p99-µs", microseconds},
		}, documents)
}

// refreshedAs takes the figures of one time of a benchmark that measures two.
func refreshedAs(now *figures, name, prefix, at string) *figures {
	f := newFigures()
	for metric, from := range map[string]string{"file-B": "file-B-" + at, "p50-µs": prefix + "p50-µs", "p99-µs": prefix + "p99-µs"} {
		if v, ok := now.Values[name+from]; ok {
			f.set(metric, v)
		}
	}
	return f
}
