// Command demo-load runs the demonstration without Docker: it starts servers on
// one MongoDB and a Prometheus that scrapes them, sends the traffic of
// tools/traffic for a while, draws the charts of docs/pictures from what
// Prometheus recorded, and lists the dashboard panels without data. `make
// demo-load` runs it:
//
//	go -C tools run ./cmd/demo-load [-for 75s] [-pictures ../docs/pictures]
//
// MONGODB_TEST_URI is the URI of the MongoDB; the Makefile starts one if it is
// not set. The commands go and prometheus are needed.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// root is the directory of the project, relative to tools/, where the command runs.
const root = ".."

func main() {
	length := flag.Duration("for", 75*time.Second, "how long the load lasts")
	servers := flag.Int("servers", 2, "number of servers")
	pictures := flag.String("pictures", "../docs/pictures", "directory for the charts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := run(ctx, *length, *servers, *pictures)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo-load:", err)
		os.Exit(1)
	}
}

var errNoMongoDB = errors.New("the servers share a MongoDB: set MONGODB_TEST_URI, for instance to what .ci/mongo-test-server prints")

func run(ctx context.Context, length time.Duration, servers int, pictures string) (err error) {
	uri := os.Getenv("MONGODB_TEST_URI")
	if uri == "" {
		return errNoMongoDB
	}
	dir, err := os.MkdirTemp("", "demo-load-*")
	if err != nil {
		return err
	}
	fmt.Println("logs are in", dir, "until this ends without an error")
	defer func() {
		if err == nil {
			err = os.RemoveAll(dir)
		}
	}()
	d, err := start(ctx, options{
		root: root, dir: dir, servers: servers, mongoDB: uri, database: "demo_" + strings.ToLower(rand.Text()),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	fmt.Printf("%d servers run for %v; Prometheus is at %s\n", servers, length, d.prometheus.url)
	from := time.Now()
	loadCtx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	fmt.Print(d.load(loadCtx, 1))
	to := time.Now()
	return errors.Join(check(ctx, d), draw(ctx, d, pictures, from, to))
}

// check prints the panels of the dashboards without data.
func check(ctx context.Context, d *demo) error {
	empty, err := d.prometheus.empty(ctx)
	for _, panel := range empty {
		fmt.Println("no data:", panel)
	}
	return err
}

func draw(ctx context.Context, d *demo, dir string, from, to time.Time) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // G301: the pictures are not secret
		return err
	}
	for _, pic := range pictures() {
		pic.file = filepath.Join(dir, pic.file)
		if err := d.prometheus.draw(ctx, pic, from, to); err != nil {
			return err
		}
		fmt.Println("drew", pic.file)
	}
	return nil
}
