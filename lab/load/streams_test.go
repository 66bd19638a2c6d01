package load_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oauth-server/lab/load"
)

// numbers is a source whose requests have a number in the path, and which keeps what became of each.
type numbers struct {
	next   int
	most   int // 0: any number
	done   map[int]int
	bodies map[int]string
}

func newNumbers() *numbers { return &numbers{done: map[int]int{}, bodies: map[int]string{}} }

func (s *numbers) Next() (load.Call, bool) {
	s.next++
	return load.Call{Class: s.next % 2, ID: s.next, Request: fmt.Appendf(nil, "GET /%d HTTP/1.1\r\nHost: localhost\r\n\r\n", s.next)}, s.most == 0 || s.next <= s.most
}

func (s *numbers) Done(c load.Call, status int, body []byte) {
	s.done[c.ID] = status
	s.bodies[c.ID] = string(body)
}

func run(t *testing.T, handler http.HandlerFunc, s load.Stream) (*load.Result, *numbers) {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	source := newNumbers()
	s.Source = source
	result := send(t, server, s)[0]
	if len(result.Records) != source.next || len(source.done) != source.next {
		t.Errorf("%d requests, %d records, %d ended", source.next, len(result.Records), len(source.done))
	}
	return result, source
}

func count(result *load.Result, status int) (n int) {
	for _, r := range result.Records {
		if r.Status == status {
			n++
		}
	}
	return n
}

// TestRequestsDoNotWaitForAnswers: the server answers nothing before many requests are under way. Each has the answer to
// its own request, and its class.
func TestRequestsDoNotWaitForAnswers(t *testing.T) {
	t.Parallel()
	const together = 40
	var arrived sync.WaitGroup
	var n atomic.Int64
	arrived.Add(together)
	result, source := run(t, func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) <= together {
			arrived.Done()
		}
		arrived.Wait()
		_, _ = io.WriteString(w, "answer to "+r.URL.Path)
	}, load.Stream{Phases: []load.Phase{{For: time.Second, Rate: 200}}, Connections: 1000, From: []string{"127.0.1.1", "127.0.1.2"}})
	if ok := count(result, http.StatusOK); ok != source.next || ok < together {
		t.Errorf("%d of %d requests were answered", ok, source.next)
	}
	for id, body := range source.bodies {
		if want := fmt.Sprintf("answer to /%d", id); body != want {
			t.Errorf("request %d got %q", id, body)
		}
	}
	odd := 0
	for _, r := range result.Records {
		odd += r.Class
		if r.Sent < r.Due || r.Done < r.Sent || r.Took() != r.Done-r.Due {
			t.Errorf("record %+v", r)
		}
	}
	if odd != (source.next+1)/2 {
		t.Errorf("%d of %d requests are of class 1", odd, source.next)
	}
	if result.Opened < together {
		t.Errorf("%d connections", result.Opened)
	}
}

// TestHangUp: a caller without an answer closes its connection, which the server sees.
func TestHangUp(t *testing.T) {
	t.Parallel()
	var gone atomic.Int64
	result, source := run(t, func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		gone.Add(1)
	}, load.Stream{Phases: []load.Phase{{For: time.Second / 2, Rate: 100}}, Patience: 100 * time.Millisecond, Connections: 1000})
	if n := count(result, load.HungUp); n != source.next || n < 20 {
		t.Errorf("%d of %d callers hung up", n, source.next)
	}
	for _, r := range result.Records {
		if r.Took() < 100*time.Millisecond {
			t.Errorf("hung up after %s", r.Took())
		}
	}
	if gone.Load() == 0 {
		t.Error("the server saw no caller hang up")
	}
}

// TestConnectionsAreBounded: without a connection a request is not sent, and its caller hangs up all the same.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	result, source := run(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		load.Stream{Phases: []load.Phase{{For: time.Second / 4, Rate: 100}}, Connections: 2})
	sent := 0
	for _, r := range result.Records {
		if r.Sent > 0 {
			sent++
		}
	}
	if sent != 2 || result.Opened != 2 || count(result, load.HungUp) != source.next {
		t.Errorf("%d of %d requests were sent on %d connections", sent, source.next, result.Opened)
	}
}

// TestServerCloses: answers that end their connection, and connections that end without an answer.
func TestServerCloses(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	result, source := run(t, func(w http.ResponseWriter, _ *http.Request) {
		switch n.Add(1) % 3 {
		case 0:
			panic(http.ErrAbortHandler)
		case 1:
			w.Header().Set("Connection", "close")
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}, load.Stream{Phases: []load.Phase{{For: time.Second / 2, Rate: 200}}, Connections: 100})
	closed, refused := count(result, load.Closed), count(result, http.StatusServiceUnavailable)
	if closed == 0 || refused < closed || closed+refused != source.next {
		t.Errorf("%d requests, %d refused, %d without an answer", source.next, refused, closed)
	}
}

// TestClosedLoop: some requests are always under way, and never more.
func TestClosedLoop(t *testing.T) {
	t.Parallel()
	var under, most atomic.Int64
	result, source := run(t, func(w http.ResponseWriter, _ *http.Request) {
		now := under.Add(1)
		for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
		}
		under.Add(-1)
		_, _ = io.WriteString(w, "yes")
	}, load.Stream{Phases: []load.Phase{{For: time.Second / 4}}, Closed: 3, Connections: 3})
	if result.Opened > 3 || most.Load() > 3 || source.next < 10 {
		t.Errorf("%d requests on %d connections, at most %d at once", source.next, result.Opened, most.Load())
	}
}
