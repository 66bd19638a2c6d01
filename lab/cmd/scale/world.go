package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"oauth-server/lab/process"
	"oauth-server/lab/servers"
)

// figures holds the measurements of a part, by names such as clients/mongodb/1000/start.
type figures map[string]float64

// world is what all parts use.
type world struct {
	sizes   sizes
	dir     string // for data, logs and the binary
	binary  string
	heap    string // of MongoDB's stand-in
	uri     string // of MongoDB's stand-in
	figures figures
}

// standInOptions are the options that let MongoDB's stand-in hold millions of documents. The heap
// starts at full size, to avoid a full collection each time it grows. By default, the TTL monitor
// would scan all documents every second, and a cursor would copy all documents it has not returned
// yet, or return them all at once.
const standInOptions = "-Xms%[1]s -Xmx%[1]s -Xmn1g -XX:TieredStopAtLevel=4 -DttlMonitorSeconds=60 -DcursorsShare=true"

// withMongoDB runs do while MongoDB's stand-in runs. Each part has one of its own, with an empty heap.
func (w *world) withMongoDB(ctx context.Context, do func() error) error {
	const standIn = "../.ci/mongo-test-server"
	out, err := process.Run(ctx, "", "", "env", "MONGO_TEST_SERVER_OPTIONS="+fmt.Sprintf(standInOptions, w.heap), standIn)
	if err != nil {
		return err
	}
	w.uri = strings.TrimSpace(string(out))
	err = do()
	_, failed := process.Run(context.WithoutCancel(ctx), "", "", "env", "MONGODB_TEST_URI="+w.uri, standIn, "stop")
	return errors.Join(err, failed)
}

// The kinds of store.
const (
	embedded = "embedded"
	mongodb  = "mongodb"
)

func kinds() []string { return []string{embedded, mongodb} }

var titles = map[string]string{embedded: "The embedded file:", mongodb: "MongoDB's stand-in, three instances:"}

// newStore makes an empty store.
func (w *world) newStore(ctx context.Context, kind string) (*servers.Store, error) {
	dir, err := os.MkdirTemp(w.dir, "store-*")
	if err != nil {
		return nil, err
	}
	if kind == embedded {
		return servers.InFile(w.binary, dir, "data"), nil
	}
	return servers.InMongoDB(ctx, w.binary, dir, w.uri)
}

// measureEach measures a part with each number, on both stores.
func (w *world) measureEach(ctx context.Context, part string, numbers []int,
	measure func(ctx context.Context, s *servers.Store, n int, name string) error,
) error {
	for _, kind := range kinds() {
		for _, n := range numbers {
			name, began := fmt.Sprintf("%s/%s/%d/", part, kind, n), time.Now()
			s, err := w.newStore(ctx, kind)
			if err != nil {
				return err
			}
			if err := errors.Join(measure(ctx, s, n, name), s.Drop(ctx)); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			fmt.Printf("  %s: %s\n", name, time.Since(began).Round(time.Second))
		}
	}
	return nil
}

// tables returns a table for each kind of store.
func (w *world) tables(part string, numbers []int, columns func(kind string) []column) string {
	var b strings.Builder
	for _, kind := range kinds() {
		b.WriteString("\n" + titles[kind] + "\n\n" + w.figures.table(part, columns(kind), rowsOf(numbers, part+"/"+kind+"/%d/")))
	}
	return b.String()
}

// instances is the number of servers that share MongoDB.
const instances = 3

// serverConfig leaves no limit that this program would reach.
const serverConfig = `log: { level: warn }
rate_limit: { default: { user: [ { name: high, requests: 100000000, window: 60s } ] } }
failed_attempts: { clients: { per_address: 1000000, per_name: 1000000 } }
passwords: { sign_ins_per_minute: 1000000 }`

// serve starts so many servers on a store, one after the other. If it fails, none runs.
func serve(ctx context.Context, s *servers.Store, n int) (all []*servers.Server, err error) {
	for range n {
		i, err := s.Serve(ctx, process.AnyCore, serverConfig)
		if err != nil {
			return nil, errors.Join(err, stopAll(all))
		}
		all = append(all, i)
	}
	return all, nil
}

func stopAll(all []*servers.Server) error {
	var errs []error
	for _, i := range all {
		errs = append(errs, i.Stop())
	}
	return errors.Join(errs...)
}
