// Command versus compares two builds of the server from outside, by turns, and prints a table of medians:
//
//	go -C benchmarks run ./cmd/versus -old /tmp/old-server -new /tmp/new-server -mongodb mongodb://127.0.0.1:27017
//
// Everything it needs is made through the commands and the endpoints of each binary, so the two may store it
// differently. The parts are
//
//	file       tokens, refreshes and redeemed codes per second with 1 and 64 connections, and the bytes that a
//	           refresh and a sign-in leave in the file
//	mongodb    refreshes per second
//	start      time and processor time until ready, by number of clients
//	follow     processor time for one change of a client: with which another instance follows it on MongoDB, and with
//	           which an instance makes it in its file
//	changes    with 10 changes a second, how long until another instance acts on each kind
//	idle       database commands per instance and minute without traffic
//
// It reads /proc, so it runs on Linux only. Both builds share the machine with the load.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	var b bench
	old, latest := flag.String("old", "", "binary to compare with"), flag.String("new", "", "binary to compare")
	names := flag.String("parts", "", "parts, comma-separated (default all)")
	flag.IntVar(&b.rounds, "rounds", 5, "rounds")
	flag.IntVar(&b.slices, "slices", 8, "slices of each rate in a round: both builds run, and take turns under load")
	flag.DurationVar(&b.slice, "slice", 300*time.Millisecond, "length of a slice")
	flag.IntVar(&b.codes, "codes", 400, "codes of a slice with 64 connections; with one, a tenth")
	flag.StringVar(&b.uri, "mongodb", os.Getenv("MONGODB_TEST_URI"), "MongoDB, for the parts that need it")
	flag.StringVar(&b.clients, "clients", "100000,1000000", "numbers of clients of the part start")
	flag.IntVar(&b.followed, "followed", 2000, "clients of the part follow on MongoDB, where importing one takes 20 ms")
	flag.IntVar(&b.followedInFile, "followed-in-file", 100000, "clients of the part follow in a file")
	flag.DurationVar(&b.rest, "rest", time.Minute, "how long the part idle counts")
	flag.StringVar(&b.dir, "dir", "", "directory for the data (default a temporary one)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := b.run(ctx, *old, *latest, *names)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "versus:", err)
		os.Exit(1)
	}
}

// bench is what all parts use.
type bench struct {
	rounds, slices, codes    int
	followed, followedInFile int
	slice, rest              time.Duration
	uri, clients, dir        string
	order                    []string // of the measures
}

// side is one of the builds, with what was measured of it.
type side struct {
	*bench
	name, binary, dir string
	figures           map[string][]float64
	stores            map[string]*store // by what they are for
	databases         []*store
}

// part is measured in rounds. The sides come in another order each time.
type part struct {
	name    string
	prepare func(ctx context.Context, s *side) error
	once    bool // in one round: it has no noise
	measure func(ctx context.Context, sides []*side) error
}

func parts() []part {
	return []part{
		{"file", prepareFile, false, measureFile},
		{"mongodb", prepareMongoDB, false, measureMongoDB},
		{"start", prepareStart, false, byTurns(measureStart)},
		{"follow", prepareFollow, false, byTurns(measureFollow)},
		{"idle", prepareIdle, true, byTurns(measureIdle)},
		{"changes", prepareChanges, true, byTurns(measureChanges)},
	}
}

// byTurns measures one side after the other.
func byTurns(measure func(ctx context.Context, s *side) error) func(ctx context.Context, sides []*side) error {
	return func(ctx context.Context, sides []*side) error {
		for _, s := range sides {
			if err := measure(ctx, s); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
		return nil
	}
}

func (b *bench) run(ctx context.Context, old, latest, names string) (err error) {
	if old == "" || latest == "" {
		return errors.New("-old and -new are needed")
	}
	if b.dir == "" {
		if b.dir, err = os.MkdirTemp("", "versus-*"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	}
	sides := make([]*side, 2)
	for i, binary := range []string{old, latest} {
		name := []string{"old", "new"}[i]
		sides[i] = &side{bench: b, name: name, binary: binary, dir: filepath.Join(b.dir, name), figures: map[string][]float64{}, stores: map[string]*store{}}
		if err := os.MkdirAll(sides[i].dir, 0o700); err != nil {
			return err
		}
	}
	var errs []error
	for _, p := range parts() {
		if names == "" || slices.Contains(strings.Split(names, ","), p.name) {
			if err := b.runPart(ctx, p, sides); err != nil {
				errs = append(errs, fmt.Errorf("part %s: %w", p.name, err))
			}
		}
	}
	for _, s := range sides {
		for _, st := range s.databases {
			errs = append(errs, st.drop(context.WithoutCancel(ctx)))
		}
	}
	b.print(sides)
	return errors.Join(errs...)
}

func (b *bench) runPart(ctx context.Context, p part, sides []*side) error {
	for _, s := range sides {
		fmt.Fprintln(os.Stderr, time.Now().Format(time.TimeOnly), "prepare", p.name, s.name)
		if err := p.prepare(ctx, s); err != nil {
			return err
		}
	}
	rounds := b.rounds
	if p.once {
		rounds = 1
	}
	for round := range rounds {
		fmt.Fprintln(os.Stderr, time.Now().Format(time.TimeOnly), p.name, "round", round+1)
		inOrder := slices.Clone(sides)
		if round%2 == 1 {
			slices.Reverse(inOrder)
		}
		if err := p.measure(ctx, inOrder); err != nil {
			return err
		}
	}
	return nil
}

// note adds a figure.
func (s *side) note(what string, v float64) {
	if !slices.Contains(s.order, what) {
		s.order = append(s.order, what)
	}
	s.figures[what] = append(s.figures[what], v)
}

// print writes the table: medians, and the median of the ratios of figures that were measured one after the other.
func (b *bench) print(sides []*side) {
	fmt.Println("| measure | old | new | new / old | figures |\n|---|---|---|---|---|")
	for _, what := range b.order {
		old, latest := sides[0].figures[what], sides[1].figures[what]
		var ratios []float64
		for i := range min(len(old), len(latest)) {
			ratios = append(ratios, latest[i]/old[i])
		}
		fmt.Printf("| %s | %s | %s | %s | %d |\n", what, number(median(old)), number(median(latest)), number(median(ratios)), len(ratios))
	}
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values)) // NaN first
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

func number(v float64) string {
	switch {
	case math.IsNaN(v): // 0 of 0
		return "–"
	case v < 100:
		return fmt.Sprintf("%.3g", v)
	}
	return fmt.Sprintf("%.0f", v)
}
