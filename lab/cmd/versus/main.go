// Command versus compares two builds of the server from outside, by turns, and prints a table of medians.
// `make bench-versus` runs it:
//
//	MONGODB_TEST_URI=mongodb://127.0.0.1:27017 go -C lab run ./cmd/versus -old /tmp/old-server -new /tmp/new-server
//
// Everything it needs is made through the commands and the endpoints of each binary, so the two may store it
// differently. The parts are
//
//	file       tokens, refreshes and redeemed codes per second with 1 and 64 connections, and the bytes that a
//	           refresh and a sign-in leave in the file
//	default    tokens per second with default settings, and what each allocates; the access log goes to a file
//	mongodb    refreshes per second
//	start      time and processor time until ready, by number of clients
//	follow     processor time for one change of a client: with which another instance follows it on MongoDB, and with
//	           which an instance makes it in its file
//	changes    with 10 changes a second, how long until another instance acts on each kind
//	idle       database commands per instance and minute without traffic
//
// Both builds share the machine with the load. With TMPDIR in memory no disk is measured.
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

	"oauth-server/lab/benchmark"
	"oauth-server/lab/page"
	"oauth-server/lab/servers"
)

func main() {
	old, latest := flag.String("old", "", "binary to compare with"), flag.String("new", "", "binary to compare")
	names := flag.String("parts", "", "parts, comma-separated (default all)")
	small := flag.Bool("small", false, "small numbers: a try in two minutes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := run(ctx, *old, *latest, *names, sizesOf(*small))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "versus:", err)
		os.Exit(1)
	}
}

// sizes holds the number and size of the measurements.
type sizes struct {
	rounds         int
	slices         int // of each rate in a round: both builds run, and take turns under load
	slice          time.Duration
	codes          int           // of a slice with 64 connections; with one, a tenth
	clients        []int         // of the part start
	followed       int           // clients of the part follow on MongoDB, where importing one takes some milliseconds
	followedInFile int           // the same in a file
	changes        int           // of the part changes
	idle           time.Duration // of the part idle
}

func sizesOf(small bool) sizes {
	if small {
		return sizes{
			rounds: 1, slices: 2, slice: 100 * time.Millisecond, codes: 50, clients: []int{1000}, followed: 20, followedInFile: 100,
			changes: 50, idle: 5 * time.Second,
		}
	}
	return sizes{
		rounds: 5, slices: 8, slice: 300 * time.Millisecond, codes: 400, clients: []int{100_000, 1_000_000}, followed: 2000,
		followedInFile: 100_000, changes: 600, idle: time.Minute,
	}
}

// bench is what all parts use.
type bench struct {
	sizes
	uri       string   // of MongoDB
	order     []string // of the measures
	databases []*servers.Store
}

// side is one of the builds, with its figures.
type side struct {
	*bench
	name, binary, dir string
	figures           map[string][]float64
	stores            map[string]*servers.Store // by what they are for
	refreshes         map[string]*servers.Refreshes
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
		{"default", prepareDefault, false, measureDefault},
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

func run(ctx context.Context, old, latest, names string, all sizes) (err error) {
	if old == "" || latest == "" {
		return errors.New("-old and -new are needed")
	}
	dir, err := os.MkdirTemp("", "versus-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{sizes: all, uri: os.Getenv("MONGODB_TEST_URI")}
	var sides []*side
	for i, binary := range []string{old, latest} {
		name := []string{"old", "new"}[i]
		s := &side{
			bench: b, name: name, binary: binary, dir: filepath.Join(dir, name),
			figures: map[string][]float64{}, stores: map[string]*servers.Store{}, refreshes: map[string]*servers.Refreshes{},
		}
		if err := os.Mkdir(s.dir, 0o700); err != nil {
			return err
		}
		sides = append(sides, s)
	}
	var errs []error
	for _, p := range parts() {
		if names == "" || slices.Contains(strings.Split(names, ","), p.name) {
			if err := b.runPart(ctx, p, sides); err != nil {
				errs = append(errs, fmt.Errorf("part %s: %w", p.name, err))
			}
		}
	}
	for _, st := range b.databases {
		errs = append(errs, st.Drop(ctx))
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
		fmt.Printf("| %s | %s | %s | %s | %d |\n", what, page.Number(benchmark.Median(old)), page.Number(benchmark.Median(latest)), page.Number(benchmark.Median(ratios)), len(ratios))
	}
}

// The people and clients of a store.
const (
	user, password = "ada", "a quiet harbour at four in the morning"
	callback       = "http://127.0.0.1/callback"

	shop, legacy, web, operator = "shop", "legacy", "web", "ops"
)

// config leaves no limit that this program reaches.
const config = `log: { level: error }
overload: { mode: "off" }
rate_limit: { mode: "off" }
failed_attempts: { clients: { per_address: 1000000, per_name: 1000000 } }
passwords: { sign_ins_per_minute: 1000000 }
tokens: { code_ttl: 10m }
`

// defaultConfig is for the use default: the limiter and the access log work, and the limit is far away.
const defaultConfig = "rate_limit: { default: { client: [ { name: ample, requests: 1000000000, window: 60s } ] } }\n"

// newFile makes a store in a file, for that use.
func (s *side) newFile(use string) *servers.Store {
	s.stores[use] = servers.InFile(s.binary, s.dir, strings.ReplaceAll(use, " ", "-"))
	return s.stores[use]
}

// newDatabase makes a store in a database, for that use. It is dropped at the end.
func (s *side) newDatabase(ctx context.Context, use string) (*servers.Store, error) {
	if s.uri == "" {
		return nil, errors.New("MONGODB_TEST_URI is needed")
	}
	st, err := servers.InMongoDB(ctx, s.binary, s.dir, s.uri)
	s.stores[use], s.databases = st, append(s.databases, st)
	return st, err
}

// register makes the user and the clients.
func register(ctx context.Context, st *servers.Store) error {
	scopes := []string{"--scope=read", "--scope=write"}
	return errors.Join(
		st.CreateClient(ctx, operator, "--admin"),
		st.CreateClient(ctx, shop, append(scopes, "--grant=client_credentials")...),
		st.CreateClient(ctx, legacy, append(scopes, "--grant=password", "--grant=refresh_token")...),
		st.CreateClient(ctx, web, append(scopes, "--grant=authorization_code", "--grant=refresh_token", "--first-party", "--redirect-uri="+callback)...),
		st.CreateUser(ctx, user, password))
}

// instance is a running server.
type instance struct {
	*servers.Server
	*side
	refreshes *servers.Refreshes
}

// serving runs do while a server runs on the store for that use.
func (s *side) serving(ctx context.Context, use string, do func(i *instance) error) error {
	settings := config
	if use == "default" {
		settings = defaultConfig
	}
	return s.stores[use].Serving(ctx, settings, func(i *servers.Server) error { return do(&instance{i, s, s.refreshes[use]}) })
}

// together runs do while a server of each side runs.
func together(ctx context.Context, sides []*side, use string, do func(all []*instance) error) error {
	return sides[0].serving(ctx, use, func(first *instance) error {
		return sides[1].serving(ctx, use, func(second *instance) error { return do([]*instance{first, second}) })
	})
}
