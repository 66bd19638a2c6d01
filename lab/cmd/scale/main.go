// Command scale measures what the server costs as clients, policies and sign-ins grow in number, and writes
// the tables of docs/scale.md. `make scale` runs it:
//
//	go -C tools run ./cmd/scale [-parts clients,rest] [-small] [-old COMMIT]
//
// It builds the server, starts MongoDB's stand-in of the tests with a large heap, and measures one part after
// the other. With -old it builds the release of that commit too, measures it in the same way, and keeps its
// figures in docs/scale-old.json, which the tables show beside the new ones. It reads /proc, so it runs on
// Linux only. A part that fails leaves its tables as they were, and the status is 1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"oauth-server/lab/page"
)

func main() {
	var o settings
	parts := flag.String("parts", "", "parts to measure, comma-separated (default all: "+strings.Join(names(), ",")+")")
	flag.BoolVar(&o.small, "small", false, "small numbers: a try in a few minutes that writes no file")
	flag.StringVar(&o.old, "old", "", "commit of a release to measure as well")
	flag.StringVar(&o.root, "root", "..", "directory of the project")
	flag.StringVar(&o.heap, "heap", "16g", "heap of MongoDB's stand-in, at most")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := run(ctx, o, *parts)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// settings are the flags.
type settings struct {
	root, old, heap string
	small           bool
}

// part is one part of the page.
type part struct {
	name    string
	hasOld  bool // the release before is measured by it too
	measure func(ctx context.Context, w *world, r *release) error
	tables  func(w *world, old, now *figures) string
}

func parts() []part {
	return []part{
		{"refresh", true, measureRefresh, refreshTables},
		{"families", false, measureFamilies, familyTables},
		{"clients", true, measureClients, clientTables},
		{"policies", true, measurePolicies, policyTables},
		{"rest", true, measureRest, restTables},
	}
}

func names() (all []string) {
	for _, p := range parts() {
		all = append(all, p.name)
	}
	return all
}

// chosen returns the parts of these names, in the order of the page.
func chosen(list string) ([]part, error) {
	if list == "" {
		return parts(), nil
	}
	var found []part
	wanted := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
	for _, p := range parts() {
		if slices.Contains(wanted, p.name) {
			found = append(found, p)
		}
	}
	if len(found) != len(wanted) {
		return nil, fmt.Errorf("-parts %s: the parts are %s", list, strings.Join(names(), ", "))
	}
	return found, nil
}

func run(ctx context.Context, o settings, list string) (err error) {
	todo, err := chosen(list)
	if err != nil {
		return err
	}
	old, err := readFigures(filepath.Join(o.root, oldFile))
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "scale-*")
	if err != nil {
		return err
	}
	fmt.Println("data and logs are in", dir, "until this ends without an error")
	w := &world{settings: o, dir: dir, sizes: sizesOf(o.small), old: old}
	if err := w.build(ctx); err != nil {
		return err
	}
	var errs []error
	for _, p := range todo {
		if err := w.run(ctx, p); err != nil {
			errs = append(errs, fmt.Errorf("part %s: %w", p.name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// run measures a part and writes its tables.
func (w *world) run(ctx context.Context, p part) error {
	began, before := time.Now(), loadAverage()
	fmt.Println(p.name, "…")
	now := newFigures()
	err := w.with(ctx, func() error {
		if w.before != nil && p.hasOld {
			measured := newFigures()
			w.before.figures = measured
			if err := p.measure(ctx, w, w.before); err != nil {
				return fmt.Errorf("%s: %w", w.old.Commit, err)
			}
			w.old.replace(p.name, measured)
			w.old.Commit, w.old.Measured = w.before.commit, machine(began, before)
			if err := w.keep(); err != nil {
				return err
			}
		}
		w.now.figures = now
		return p.measure(ctx, w, w.now)
	})
	if err != nil {
		return err
	}
	text := p.tables(w, w.old, now) + fmt.Sprintf("\nMeasured on %s. It took %s.%s\n",
		machine(began, before), time.Since(began).Round(time.Second), w.whereBefore(p))
	if w.small {
		fmt.Println(text)
		return nil
	}
	return page.Write(filepath.Join(w.root, pageFile), p.name, text)
}

// whereBefore says where the release before was measured, if that was in another run.
func (w *world) whereBefore(p part) string {
	if !p.hasOld || w.before != nil || w.old.Measured == "" {
		return ""
	}
	return " The release before was measured on " + w.old.Measured + "."
}

// keep writes the figures of the release before.
func (w *world) keep() error {
	if w.small {
		return nil
	}
	return w.old.write(filepath.Join(w.root, oldFile))
}

// sizes holds the number and size of the measurements.
type sizes struct {
	clients, policies   []int
	registrations       int   // client registrations and policy changes to time
	quiet               int   // registrations and changes to measure processor time for
	refreshes           []int // after so many
	refreshesBefore     int   // the most of the release before on MongoDB, where each costs what all before it left
	clientsBefore       int   // the most clients at which a registration is measured on the previous release
	sample              int   // refreshes that are timed one by one
	families, rotations int
	documents           int // families on MongoDB
	rest                time.Duration
	restClients         []int
	idle                time.Duration
}

func sizesOf(small bool) sizes {
	if small {
		return sizes{
			clients: []int{1000, 10_000}, policies: []int{100, 1000}, registrations: 4, quiet: 2, refreshes: []int{200, 2000}, refreshesBefore: 200, clientsBefore: 1000, sample: 200,
			families: 20_000, rotations: 50_000, documents: 5000, rest: 20 * time.Second, restClients: []int{1000}, idle: 2 * time.Second,
		}
	}
	return sizes{
		clients: []int{1000, 100_000, 1_000_000}, policies: []int{1000, 10_000, 100_000}, registrations: 20, quiet: 5,
		refreshes: []int{1000, 10_000, 100_000}, refreshesBefore: 10_000, clientsBefore: 100_000, sample: 2000, families: 10_000_000, rotations: 10_000_000, documents: 2_000_000,
		rest: 4 * time.Minute, restClients: []int{1000, 100_000}, idle: 6 * time.Second,
	}
}
