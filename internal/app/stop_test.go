package app

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/config"
)

func TestStopWaitsForARequestUnderWay(t *testing.T) {
	r := start(t, testConfig(t), io.Discard)
	body := url.Values{"grant_type": {"client_credentials"}, "client_id": {"shop"}, "client_secret": {r.secret}}.Encode()
	conn, answers := begin(t, r.Addr(), len(body))
	stopped := make(chan error, 1)
	go func() { stopped <- r.stop() }()
	waitUntilRefused(t, r.Addr())
	if _, err := io.WriteString(conn, body); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(answers, nil)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("the request under way was not answered: %v, %v", res, err)
	}
	_ = res.Body.Close()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// A client that keeps its connection loses no request when the server stops, because the last
// answer asks it to use another connection.
func TestStopDrainsKeptConnections(t *testing.T) {
	r := start(t, testConfig(t), io.Discard)
	r.edge.drainer.delay = time.Minute // it ends earlier, when no connection is left
	client := newClient(t, nil)
	if get(t, client, r.Issuer()+"/healthz").Close {
		t.Fatal("the connection is not kept")
	}
	stopped := make(chan error, 1)
	go func() { stopped <- r.stop() }()
	for !r.edge.drainer.draining.Load() {
		runtime.Gosched()
	}
	if last := get(t, client, r.Issuer()+"/healthz"); last.StatusCode != http.StatusOK || !last.Close {
		t.Errorf("the last answer: status %d, said to be the last: %t", last.StatusCode, last.Close)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestStopDoesNotWaitForAConnectionWithoutARequest(t *testing.T) {
	var log check.Buffer
	cfg := testConfig(t)
	cfg.ShutdownTimeout = config.Duration(2 * time.Second) // Shutdown alone would wait for five
	r := start(t, cfg, &log)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", r.Addr())
	check.OK(t, err)
	defer func() { _ = conn.Close() }()
	for r.edge.drainer.open.Load() == 0 {
		runtime.Gosched() // until the server has accepted it
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if strings.Contains(log.String(), "aborting unfinished requests") {
		t.Errorf("it was waited for:\n%s", log.String())
	}
}

func TestStopCutsOffARequestThatDoesNotEnd(t *testing.T) {
	var log check.Buffer
	cfg := testConfig(t)
	cfg.ShutdownTimeout = config.Duration(time.Second)
	r := start(t, cfg, &log)
	begin(t, r.Addr(), 100)
	check.OK(t, r.stop())
	if !strings.Contains(log.String(), "aborting unfinished requests") {
		t.Errorf("not logged:\n%s", log.String())
	}
}

// TestStopCutsOffAScrapeThatDoesNotEnd checks that the stop returns no error.
func TestStopCutsOffAScrapeThatDoesNotEnd(t *testing.T) {
	var log check.Buffer
	cfg := withOperators(t)
	cfg.ShutdownTimeout = config.Duration(time.Second)
	s, err := New(t.Context(), cfg, Options{Logger: newLogger(cfg.Log, &log)})
	check.OK(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.edge.ops.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.AdminAddr())
	check.OK(t, err)
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	check.OK(t, s.Run(ctx))
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the scrape was answered")
	}
	if !strings.Contains(log.String(), "aborting unfinished requests") {
		t.Errorf("not logged:\n%s", log.String())
	}
}

// begin sends the header of a token request and returns when the server waits for the body of that
// length.
func begin(t *testing.T, addr string, length int) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	check.OK(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "POST /token HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"+
		"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n", length)
	check.OK(t, err)
	answers := bufio.NewReader(conn)
	for _, want := range []string{"HTTP/1.1 100 Continue", ""} {
		if line, err := answers.ReadString('\n'); err != nil || strings.TrimSpace(line) != want {
			t.Fatalf("%q, %v; want %q", line, err, want)
		}
	}
	return conn, answers
}

// waitUntilRefused returns once new connections are refused.
func waitUntilRefused(t *testing.T, addr string) {
	t.Helper()
	for {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
		if err != nil {
			return
		}
		_ = conn.Close()
	}
}
