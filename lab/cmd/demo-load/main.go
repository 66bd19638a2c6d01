// Command demo-load runs the demonstration without Docker: it starts servers on
// one MongoDB, one that denies nothing for comparison, a gateway before that one, and
// a Prometheus that scrapes them, sends the traffic of lab/traffic for a while, and
// draws charts from what Prometheus recorded. Its test checks all dashboards and rules.
// `make demo-load` runs it:
//
//	go -C lab run ./cmd/demo-load [-for 90s] [-pictures DIRECTORY]
//
// The charts go to the given directory, or to a new one; the program prints its name.
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
	"path/filepath"
	"strings"
	"time"

	"oauth-server/lab/process"
)

func main() {
	length := flag.Duration("for", 90*time.Second, "how long the load lasts")
	pictures := flag.String("pictures", "", "directory for the charts; a new one if empty")
	flag.Parse()
	process.Main("demo-load", func(ctx context.Context) error {
		return process.InDir("demo-load", func(dir string) error { return run(ctx, dir, *length, *pictures) })
	})
}

var errNoMongoDB = errors.New("the servers share a MongoDB: set MONGODB_TEST_URI, for instance to what .ci/mongo-test-server prints")

func run(ctx context.Context, dir string, length time.Duration, pictures string) (err error) {
	uri := os.Getenv("MONGODB_TEST_URI")
	if uri == "" {
		return errNoMongoDB
	}
	fmt.Println("building the server, and starting it with Prometheus")
	name := "demo_" + strings.ToLower(rand.Text())
	d, err := start(ctx, options{
		root: "..", dir: dir, scale: 1, scrape: scrapeEvery, mongoDB: uri, database: name, comparison: name + "_comparison",
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	fmt.Printf("%d servers, one that denies nothing and a gateway run for %v; Prometheus is at %s\n", len(d.limited.targets), length, d.prometheus.url)
	began := time.Now()
	loadCtx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	summary := d.load(loadCtx)
	fmt.Print(summary)
	// Each point is the rate over the time before it.
	return draw(ctx, d, pictures, began.Add(rateOver), time.Now())
}

func draw(ctx context.Context, d *demo, dir string, from, to time.Time) (err error) {
	if dir == "" {
		if dir, err = os.MkdirTemp("", "demo-load-pictures-*"); err != nil {
			return err
		}
	}
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
