package load_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oauth-server/lab/load"
	"oauth-server/lab/process"
)

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
	r := send(t, server, load.Stream{Phases: load.Steady(200, time.Second), Connections: 1, Source: load.Repeat(get)})[0].Between(0, time.Second)
	if n := len(r.Took); n < 120 || r.Statuses[200] != n {
		t.Errorf("%d requests, answers %v", n, r.Statuses)
	}
	// Of about 200 requests 60 fall into the stall; a generator that waits for the answer would have one such latency.
	if p := load.Percentile(r.Took, 90); p < stall/4 {
		t.Errorf("90 %% of the requests took at most %s, although the server stalled for %s", p, stall)
	}
}

// TestTwoStreams: each stream has its own requests, rate, connections and addresses.
func TestTwoStreams(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.RemoteAddr, "127.0.1.1:") {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer server.Close()
	results := send(t, server,
		load.Stream{Phases: load.Steady(400, time.Second/4), Connections: 2, Source: load.Repeat(get)},
		load.Stream{Phases: load.Steady(0, time.Second/4), Closed: 1, From: []string{"127.0.1.1"}, Source: load.Repeat(get)})
	for i, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
		r := results[i].Between(0, time.Second/4)
		if n := len(r.Took); n < 50 || r.Statuses[want] != n || r.Rate <= 0 || results[i].Opened != 2-i {
			t.Errorf("stream %d: %d requests on %d connections, answers %v", i, n, results[i].Opened, r.Statuses)
		}
	}
}

// TestLastRequest: a stream ends with its source.
func TestLastRequest(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	source := newNumbers()
	source.most = 50
	result := send(t, server, load.Stream{Phases: load.Steady(0, time.Minute), Closed: 4, Source: source})[0]
	if n := len(result.Records); n != 50 || len(source.done) != 50 {
		t.Errorf("%d records of %d requests", n, len(source.done))
	}
}

// TestSucceeded: what failed is not counted twice because it was late as well.
func TestSucceeded(t *testing.T) {
	t.Parallel()
	r := load.Figures{}
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
}

func TestPercentile(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		n    int
		p    float64
		want time.Duration
	}{
		{0, 99, 0},
		{1, 50, 1},
		{1, 100, 1},
		{2, 50, 1},
		{2, 51, 2},
		{100, 99, 99},
		{100, 99.5, 100},
		{101, 99, 100},
		{100, 50, 50},
		{1000, 99.9, 999},
		{1000, 100, 1000},
		{10, 0, 1},
	} {
		all := make([]time.Duration, tt.n)
		for i := range all {
			all[i] = time.Duration(i + 1)
		}
		if got := load.Percentile(all, tt.p); got != tt.want {
			t.Errorf("percentile %v of 1 to %d is %d, want %d", tt.p, tt.n, got, tt.want)
		}
	}
}

func TestRefreshToken(t *testing.T) {
	t.Parallel()
	if got := load.RefreshToken([]byte(`{"access_token":"a","refresh_token":"b.c-1","scope":"read"}`)); got != "b.c-1" {
		t.Errorf("%q", got)
	}
	for _, body := range []string{`{"access_token":"a"}`, `{"refresh_token":"b`, `{"refresh_token":""}`, ""} {
		if got := load.RefreshToken([]byte(body)); got != "" {
			t.Errorf("%s has %q", body, got)
		}
	}
}

func send(t *testing.T, s *httptest.Server, streams ...load.Stream) []*load.Result {
	t.Helper()
	o := load.Options{Address: strings.TrimPrefix(s.URL, "http://"), Core: process.AnyCore, Seed: 1}
	results, err := load.Run(t.Context(), o, streams...)
	if err != nil {
		t.Fatal(err)
	}
	return results
}
