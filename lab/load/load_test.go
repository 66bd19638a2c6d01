package load_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oauth-server/lab/load"
)

const anyCore = -1

func get(int) []byte { return []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") }

// TestStallShows: while the server stalls, requests go on to be due, and the wait of each counts.
func TestStallShows(t *testing.T) {
	t.Parallel()
	const stall = 300 * time.Millisecond
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 20 {
			<-time.After(stall)
		}
		_, _ = w.Write([]byte("yes"))
	}))
	defer server.Close()
	results, err := load.Run(t.Context(), load.Options{Address: addressOf(server), Core: anyCore, For: time.Second, Seed: 1},
		load.Stream{Rate: 200, Connections: 1, Request: get})
	if err != nil {
		t.Fatal(err)
	}
	r := results[0]
	if n := len(r.Took); n < 120 || r.Statuses[200] != n {
		t.Errorf("%d requests, answers %v", n, r.Statuses)
	}
	// Of about 200 requests 60 fall into the stall; a generator that waits for the answer would have one such latency.
	if p := r.Percentile(90); p < stall/4 {
		t.Errorf("90 %% of the requests took at most %s, although the server stalled for %s", p, stall)
	}
}

// TestClosedConnections: answers that end their connection, and connections that end without an answer, are counted,
// and replaced.
func TestClosedConnections(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch asked.Add(1) % 3 {
		case 0:
			panic(http.ErrAbortHandler)
		case 1:
			w.Header().Set("Connection", "close")
		}
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	results, err := load.Run(t.Context(), load.Options{Address: addressOf(server), Core: anyCore, For: time.Second / 4, Seed: 1},
		load.Stream{Rate: 400, Connections: 2, Request: get}, load.Stream{Connections: 1, From: "127.0.1.1", Request: get})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if r.Statuses[0] == 0 || r.Statuses[http.StatusTooManyRequests] < r.Statuses[0] || r.Statuses[0]+r.Statuses[429] != len(r.Took) {
			t.Errorf("stream %d: %d requests, answers %v", i, len(r.Took), r.Statuses)
		}
	}
	if got := results[0].Succeeded(time.Second); got != 0 {
		t.Errorf("%v of the requests succeeded, want none", got)
	}
}

// TestSucceeded: what failed is not counted twice because it was late as well; and what a percentile is.
func TestSucceeded(t *testing.T) {
	t.Parallel()
	r := load.Result{Statuses: map[int]int{200: 90, 0: 10}}
	for n := range 100 {
		r.Took = append(r.Took, time.Duration(n+1)*time.Millisecond)
	}
	r.OK = r.Took[:90]
	if got := r.Succeeded(80 * time.Millisecond); got != 0.8 {
		t.Errorf("%v succeeded in time, want 0.8", got)
	}
	if got := r.Succeeded(time.Second); got != 0.9 {
		t.Errorf("%v succeeded, want 0.9", got)
	}
	for p, want := range map[float64]time.Duration{50: 50, 99: 99, 99.5: 100, 100: 100, 0: 1} {
		if got := r.Percentile(p); got != want*time.Millisecond {
			t.Errorf("the %v-th percentile of 1 to 100 ms is %s", p, got)
		}
	}
}

func addressOf(s *httptest.Server) string { return strings.TrimPrefix(s.URL, "http://") }
