// Command main runs the demonstration for a minute and leaves the charts, for
// `make demo-load`:
//
//	go run ./internal/demoload/main [-for 75s] [-pictures docs/pictures]
//
// MONGODB_TEST_URI names the MongoDB to use; the Makefile starts one.
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

	"oauth-server/internal/demoload"
)

func main() {
	length := flag.Duration("for", 75*time.Second, "how long the load lasts")
	servers := flag.Int("servers", 2, "how many servers")
	pictures := flag.String("pictures", "docs/pictures", "directory for the charts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := run(ctx, *length, *servers, *pictures)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo-load:", err)
		os.Exit(1)
	}
}

// errNoMongoDB says what is missing.
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
	fmt.Println("logs are in", dir, "while this runs, and if it fails")
	defer func() {
		if err == nil {
			err = os.RemoveAll(dir)
		}
	}()
	demo, err := demoload.Start(ctx, demoload.Options{
		Root: ".", Dir: dir, Servers: servers, MongoDB: uri, Database: "demo_" + strings.ToLower(rand.Text()),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, demo.Stop()) }()
	fmt.Printf("%d servers run for %v; Prometheus is at %s\n", servers, length, demo.Prometheus.URL)
	from := time.Now()
	load, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	fmt.Print(demo.Play(load, 1))
	to := time.Now()
	return errors.Join(check(ctx, demo), draw(ctx, demo, pictures, from, to))
}

func check(ctx context.Context, demo *demoload.Demo) error {
	empty, err := demo.Prometheus.Empty(ctx)
	for _, panel := range empty {
		fmt.Println("no data:", panel)
	}
	return err
}

func draw(ctx context.Context, demo *demoload.Demo, dir string, from, to time.Time) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // G301: pictures for everybody
		return err
	}
	for _, picture := range demoload.Pictures() {
		picture.File = filepath.Join(dir, picture.File)
		if err := demo.Prometheus.Draw(ctx, picture, from, to); err != nil {
			return err
		}
		fmt.Println("drew", picture.File)
	}
	return nil
}
