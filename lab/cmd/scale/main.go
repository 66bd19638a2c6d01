// Command scale measures what the server costs as clients, policies and sign-ins grow in number, and writes the tables of
// lab/results/scale.txt. `make scale` runs it:
//
//	go -C lab run ./cmd/scale [-parts clients,rest] [-small] [-heap 4g]
//
// It builds the server, starts MongoDB's stand-in of the tests with a large heap, and measures one part after the other
// from outside, with stores of its own. A part that fails leaves its tables as they were, and the status is 1. The parts are
//
//	families   sign-ins: benchmarks of the stores, without HTTP: a million sign-ins over HTTP take hours. Refreshes go through all
//	           sign-ins in turn, so they touch the whole file (8 minutes)
//	clients    start and memory; how soon a new client is usable, asking each instance every 25 ms (4 minutes)
//	policies   the same, for changes over the admin API at one instance (4 minutes)
//	rest       what instances without traffic ask of their stores in four minutes: commands on the wire, or bytes
//	           written to the file (5 minutes)
//
// Usable and in force: the time until token requests at all three instances succeed or return the new limit, from the answer to
// the change on. The policies share 500 limits, and a thousand of their clients exist. MongoDB is the stand-in of the tests:
// the number and size of commands and documents, and the polling intervals, carry over to a real MongoDB. Response times, memory
// and disk do not.
//
// Server, database and this program share the processors. If processor time and elapsed time differ much, the server
// waited for the disk, the database or a processor. Peak memory is resident, and contains the mapped file.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"oauth-server/lab/page"
	"oauth-server/lab/process"
	"oauth-server/lab/servers"
)

const resultsFile = "results/scale.txt"

func main() {
	list := flag.String("parts", "", "parts to measure, comma-separated (default all: "+strings.Join(names(), ",")+")")
	small := flag.Bool("small", false, "small numbers: a try in a few minutes that writes no file")
	heap := flag.String("heap", "16g", "heap of MongoDB's stand-in, at most")
	flag.Parse()
	process.Main("scale", func(ctx context.Context) error {
		return process.InDir("scale", func(dir string) error { return run(ctx, dir, *list, *heap, *small) })
	})
}

// part is one part of the results.
type part struct {
	name    string
	measure func(ctx context.Context, w *world) error
	tables  func(w *world) string
}

func parts() []part {
	return []part{
		{"families", measureFamilies, familyTables},
		{"clients", measureClients, clientTables},
		{"policies", measurePolicies, policyTables},
		{"rest", measureRest, restTables},
	}
}

func names() (all []string) {
	for _, p := range parts() {
		all = append(all, p.name)
	}
	return all
}

// chosen returns the parts of these names, in the order of the results.
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

func run(ctx context.Context, dir, list, heap string, small bool) (err error) {
	todo, err := chosen(list)
	if err != nil {
		return err
	}
	w := &world{dir: dir, heap: heap, sizes: sizesOf(small)}
	if w.binary, err = servers.BuildServer(ctx, w.dir); err != nil {
		return err
	}
	var errs []error
	for _, p := range todo {
		text, err := w.run(ctx, p)
		switch {
		case err != nil:
			err = fmt.Errorf("part %s: %w", p.name, err)
		case small:
			fmt.Println(text)
		default:
			err = page.Write(resultsFile, p.name, text)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// run measures a part and returns its tables.
func (w *world) run(ctx context.Context, p part) (string, error) {
	began, load := time.Now(), process.LoadAverage()
	fmt.Println(p.name, "…")
	w.figures = figures{}
	if err := w.withMongoDB(ctx, func() error { return p.measure(ctx, w) }); err != nil {
		return "", err
	}
	return p.tables(w) + fmt.Sprintf("\nMeasured on %s: %s, load average %s before. It took %s.\n",
		began.UTC().Format(time.DateOnly), process.Machine(), load, time.Since(began).Round(time.Second)), nil
}

// sizes holds the number and size of the measurements.
type sizes struct {
	clients, policies   []int
	registrations       int // client registrations and policy changes to time
	families, rotations int
	documents           int // families on MongoDB
	rest                time.Duration
	restClients         []int
}

func sizesOf(small bool) sizes {
	if small {
		return sizes{
			clients: []int{1000, 10_000}, policies: []int{100, 1000}, registrations: 4,
			families: 20_000, rotations: 50_000, documents: 5000, rest: 20 * time.Second, restClients: []int{1000},
		}
	}
	return sizes{
		clients: []int{1000, 100_000, 1_000_000}, policies: []int{1000, 10_000, 100_000}, registrations: 20,
		families: 10_000_000, rotations: 10_000_000, documents: 2_000_000, rest: 4 * time.Minute, restClients: []int{1000, 100_000},
	}
}
