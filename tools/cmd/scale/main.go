// Command scale-clients measures what many clients cost: how long a server takes to start, its memory,
// how long until a registration is usable, and how much processor time a change takes there. It makes
// the store with its clients first.
//
//	go -C tools build -o /tmp/ ./cmd/scale-clients && go build -o /tmp/ ./cmd/oauth-server
//	/tmp/scale-clients --clients 100000 --mongodb-uri "$MONGODB_TEST_URI" /tmp/oauth-server
//	/tmp/scale-clients --clients 100000 /tmp/oauth-server        # the embedded file
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	var o settings
	flag.IntVar(&o.clients, "clients", 100_000, "number of clients")
	flag.IntVar(&o.changes, "changes", 10, "number of registrations that are measured, with MongoDB")
	flag.StringVar(&o.uri, "mongodb-uri", "", "server to make a database on (default: an embedded file)")
	flag.Parse()
	o.binary = flag.Arg(0)
	if err := o.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "scale-clients:", err)
		os.Exit(1)
	}
}

type settings struct {
	clients, changes int
	uri, binary      string
	store            []string // flags of the server and the commands
}

// Addresses of the server that is measured.
const (
	address      = "127.0.0.1:19096"
	adminAddress = "127.0.0.1:19097"
)

func (o *settings) run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "scale-clients")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	o.store = []string{"--data", filepath.Join(dir, "data.db")}
	if o.uri != "" {
		database := "scale-clients-" + strconv.FormatInt(time.Now().Unix(), 36)
		o.store = []string{"--mongodb-uri", o.uri, "--mongodb-database", database}
		if _, err := o.command(ctx, "migrate", "up"); err != nil {
			return err
		}
		drop, err := fillDatabase(ctx, o.uri, database, o.clients)
		defer drop()
		if err != nil {
			return err
		}
	} else if err := fillFile(ctx, o.store[1], o.clients); err != nil {
		return err
	}
	fmt.Printf("%d clients\n", o.clients)
	return o.measure(ctx)
}

// command runs a command of the server's binary on the store.
func (o *settings) command(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, o.binary, append(args, o.store...)...) //nolint:gosec // the binary that is measured
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%v: %w: %s", args, err, &stderr)
	}
	return out, nil
}

func (o *settings) measure(ctx context.Context) (err error) {
	args := append([]string{"serve", "--listen", address, "--admin-listen", adminAddress, "--issuer", "http://" + address}, o.store...)
	server := exec.CommandContext(ctx, o.binary, args...) //nolint:gosec // the binary that is measured
	server.Stderr = os.Stderr
	began := time.Now()
	if err := server.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	for !answers(ctx, "http://"+address+"/readyz", nil, "", "") {
		select {
		case err := <-ended:
			return fmt.Errorf("the server ended: %w", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	defer func() { err = errors.Join(err, server.Process.Signal(os.Interrupt), <-ended) }()
	pid := server.Process.Pid
	fmt.Printf("start %.1f s, processor %v, %s\n", time.Since(began).Seconds(), processor(pid), memory(pid))
	time.Sleep(20 * time.Second) //nolint:forbidigo // at rest
	idle := rate(pid, 20*time.Second)
	fmt.Printf("at rest %.1f ms of processor time a second, %s\n", idle*1000, memory(pid))
	if o.uri == "" {
		return nil
	}
	return o.register(ctx, pid, idle)
}

// register measures registrations, one after the other. What the server spends at rest is deducted.
func (o *settings) register(ctx context.Context, pid int, idle float64) error {
	var slowest, sum time.Duration
	before, began := processor(pid), time.Now()
	for i := range o.changes {
		var made struct {
			ID     string `json:"client_id"`
			Secret string `json:"client_secret"`
		}
		out, err := o.command(ctx, "client", "create", fmt.Sprint("new-", i), "-o", "json")
		if err == nil {
			err = json.Unmarshal(out, &made)
		}
		if err != nil {
			return err
		}
		registered := time.Now()
		form := url.Values{"grant_type": {"client_credentials"}}
		for !answers(ctx, "http://"+address+"/token", form, made.ID, made.Secret) {
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // waits for another process
		}
		took := time.Since(registered)
		slowest, sum = max(slowest, took), sum+took
	}
	spent := (processor(pid) - before).Seconds() - idle*time.Since(began).Seconds()
	fmt.Printf("a registration is usable after %.2f s, at most %.2f s; it takes %.1f ms of processor time, with the requests that ask for it; %s\n",
		sum.Seconds()/float64(o.changes), slowest.Seconds(), 1000*spent/float64(o.changes), memory(pid))
	return nil
}

// answers reports whether a request is answered with 200.
func answers(ctx context.Context, address string, form url.Values, id, secret string) bool {
	method := http.MethodGet
	if form != nil {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(form.Encode()))
	if err != nil {
		return false
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.SetBasicAuth(id, secret)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	return res.Body.Close() == nil && res.StatusCode == http.StatusOK
}

// rate is the processor time that a process spends in each second of the next while.
func rate(pid int, d time.Duration) float64 {
	before := processor(pid)
	time.Sleep(d) //nolint:forbidigo // measures another process
	return (processor(pid) - before).Seconds() / d.Seconds()
}

// processor is the time that a process has used, user and system.
func processor(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// memory is the resident memory of a process: at most, and now.
func memory(pid int) string {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return err.Error()
	}
	var parts []string
	for line := range strings.Lines(string(status)) {
		for _, name := range []string{"VmHWM", "RssAnon", "RssFile"} {
			if value, ok := strings.CutPrefix(line, name+":"); ok {
				kib, _ := strconv.Atoi(strings.Fields(value)[0])
				parts = append(parts, fmt.Sprintf("%s %d MiB", name, kib>>10))
			}
		}
	}
	return strings.Join(parts, ", ")
}
