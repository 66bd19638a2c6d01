// Command soak shows that attacks do not starve a server's good clients. It builds and
// starts one server, lets good clients request tokens at a steady rate, attacks the server
// in phases from other addresses (and once from the same), prints the figures of each
// phase, and exits with status 1 if a bound is missed: in every phase 99.9 % of the good
// clients' requests succeed, 99 % of them within 50 ms, and the server's memory does not
// grow. `make soak` runs it:
//
//	go -C tools run ./cmd/soak [-duration 10m] [-mongodb-uri URI] [-gomaxprocs N] [-gomemlimit 870MiB]
//
// It reads /proc and uses the addresses 127.0.1.x, so it runs on Linux only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	root        string // directory of the project, relative to the working directory
	dir         string // for data and logs
	duration    time.Duration
	good        int     // good clients
	goodRate    float64 // requests per second of each
	connections int     // slow connections
	rate        float64 // requests per second of each flood
	addresses   int     // that the attacks come from
	seed        uint64
	only        string // name of a phase
	mongoDB     string // URI; empty for the embedded store
	goMaxProcs  string // of the server; empty as in the environment
	goMemLimit  string
}

// attackCommand makes this program the process that attacks, see [attackMain].
const attackCommand = "attack"

func main() {
	if len(os.Args) == 2 && os.Args[1] == attackCommand {
		exit(attackMain(os.Stdin, os.Stdout))
	}
	o := options{root: ".."}
	flag.DurationVar(&o.duration, "duration", 10*time.Minute, "length of all phases together, at least 20s")
	flag.IntVar(&o.good, "good", 50, "number of good clients; every other one refreshes the tokens of a user")
	flag.Float64Var(&o.goodRate, "good-rate", 2, "requests per second of each good client")
	flag.IntVar(&o.connections, "connections", 2000, "number of slow connections")
	flag.Float64Var(&o.rate, "rate", 100, "requests per second of each flood")
	flag.IntVar(&o.addresses, "addresses", 8, "number of addresses that the attacks come from, 1 to 250")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the random choices")
	flag.StringVar(&o.only, "only", "", "name of a phase that alone follows the first, such as sign-ins")
	flag.StringVar(&o.mongoDB, "mongodb-uri", "", "MongoDB for the server, which gets a new database there; the embedded store if empty")
	flag.StringVar(&o.goMaxProcs, "gomaxprocs", "", "GOMAXPROCS of the server; as in the environment if empty")
	flag.StringVar(&o.goMemLimit, "gomemlimit", "", "GOMEMLIMIT of the server; as in the environment if empty")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := run(ctx, o)
	stop()
	exit(err)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

var errOptions = errors.New("-duration is at least 20s; -good, -good-rate, -rate and -connections are above 0; -addresses is 1 to 250; -only is the name of a phase")

func (o *options) validate() error {
	if o.duration < 20*time.Second || o.good < 2 || o.goodRate <= 0 || o.rate <= 0 || o.connections < 1 || o.addresses < 1 || o.addresses > 250 ||
		phases(o.duration, o.only) == nil {
		return errOptions
	}
	return nil
}

func run(ctx context.Context, o options) (err error) {
	if err := o.validate(); err != nil {
		return err
	}
	if o.dir, err = os.MkdirTemp("", "soak-*"); err != nil {
		return err
	}
	fmt.Println("data and logs are in", o.dir, "until this ends without an error")
	defer func() {
		if err == nil {
			err = os.RemoveAll(o.dir)
		}
	}()
	w, err := start(ctx, o)
	if err != nil {
		return err
	}
	figures, err := w.soak(ctx)
	size := logSize(w.server.Log())
	if err := errors.Join(err, w.server.Stop()); err != nil {
		return err
	}
	text, err := verdict(figures)
	fmt.Printf("%s\nThe server's log (warnings and errors) has %d KiB.\n%s", report(o, figures), size>>10, text)
	return err
}

func logSize(file string) int64 {
	info, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return info.Size()
}
