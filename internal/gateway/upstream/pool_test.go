package upstream_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway/upstream"
)

// server is a hand-written HTTP server.
type server struct {
	url         *url.URL
	connections atomic.Int64
	requests    atomic.Int64
	closed      atomic.Int64  // connections that the client has closed
	waits       chan struct{} // receives after each answer when the server waits
}

// answer is an answer on the wire, and the server's action after it.
type answer struct {
	text string
	then func(s *server, in io.Reader) (more bool)
}

func keeps(*server, io.Reader) bool   { return true }
func hangsUp(*server, io.Reader) bool { return false }

// waits makes the server wait until the client hangs up.
func waits(s *server, in io.Reader) bool {
	s.waits <- struct{}{}
	_, _ = io.Copy(io.Discard, in)
	s.closed.Add(1)
	return false
}

// serve starts a server that answers the n-th request, from 1, with say(n).
func serve(t *testing.T, say func(n int64) answer) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(t, err)
	t.Cleanup(func() { check.OK(t, l.Close()) })
	s := &server{url: &url.URL{Scheme: "http", Host: l.Addr().String()}, waits: make(chan struct{}, 1)}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.connections.Add(1)
			go s.converse(conn, say)
		}
	}()
	return s
}

func (s *server) converse(conn net.Conn, say func(n int64) answer) {
	defer func() { _ = conn.Close() }()
	for in := bufio.NewReader(conn); ; {
		req, err := http.ReadRequest(in)
		if err != nil {
			s.closed.Add(1)
			return
		}
		_, _ = io.Copy(io.Discard, req.Body)
		a := say(s.requests.Add(1))
		if _, err := io.WriteString(conn, a.text); err != nil || !a.then(s, in) {
			return
		}
	}
}

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func always(text string) func(int64) answer { return func(int64) answer { return answer{text, keeps} } }

// ask sends a request and returns the status and the body.
func ask(ctx context.Context, t *testing.T, p *upstream.Pool, to *url.URL) (status int, text string, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String()+"/token", strings.NewReader("a=b"))
	check.OK(t, err)
	res, err := p.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	read, err := io.ReadAll(res.Body)
	check.OK(t, res.Body.Close())
	return res.StatusCode, string(read), err
}

// TestConnectionsAreKept checks that connections are kept if both sides want it.
func TestConnectionsAreKept(t *testing.T) {
	for name, tc := range map[string]struct {
		answer      string
		connections int64 // for three requests
	}{
		"length":       {ok, 1},
		"chunked":      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 1},
		"empty":        {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 1},
		"no content":   {"HTTP/1.1 204 No Content\r\n\r\n", 1},
		"interim":      {"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + ok, 1},
		"close":        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok", 3},
		"old":          {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 3},
		"more than it": {ok + "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, always(tc.answer))
			p := upstream.New(s.url, upstream.Options{})
			defer p.CloseIdleConnections()
			for range 3 {
				status, text, err := ask(t.Context(), t, p, s.url)
				check.OK(t, err)
				check.Equal(t, "an answer", status/100, 2)
				check.Equal(t, "not of another request", text == "evil", false)
			}
			check.Equal(t, "connections", s.connections.Load(), tc.connections)
		})
	}
}

// TestClosedByTheUpstream checks that an idle connection that the upstream has closed is not used
// and causes no failure.
func TestClosedByTheUpstream(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	defer s.Close()
	to, err := url.Parse(s.URL)
	check.OK(t, err)
	p := upstream.New(to, upstream.Options{})
	defer p.CloseIdleConnections()
	for range 3 {
		_, text, err := ask(t.Context(), t, p, to)
		check.OK(t, err)
		check.Equal(t, "answer", text, "ok")
		s.CloseClientConnections()
	}
}

// TestNothingIsRepeated checks that no failed request is repeated.
func TestNothingIsRepeated(t *testing.T) {
	for name, tc := range map[string]struct{ answer, says string }{
		"closed":             {"", "EOF"},
		"broken header":      {"HTTP/1.1 200 OK\r\nContent-", "malformed"},
		"no HTTP":            {"220 smtp\r\n\r\n", "malformed"},
		"broken body":        {"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok", "EOF"},
		"another protocol":   {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "protocol"},
		"no status":          {"HTTP/1.1 099 x\r\n\r\n", "malformed status"},
		"interim for ever":   {strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 6) + ok, "interim"},
		"an endless header":  {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2<<20) + "\r\n\r\n", "too large"},
		"two lengths":        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", "Content-Length"},
		"a length below 0":   {"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok", "Content-Length"},
		"a chunk that lies":  {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nok\r\n", "chunk"},
		"an unknown framing": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\nok", "transfer"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(n int64) answer {
				if n == 1 {
					return answer{ok, keeps} // to have an idle connection
				}
				return answer{tc.answer, hangsUp}
			})
			p := upstream.New(s.url, upstream.Options{})
			defer p.CloseIdleConnections()
			_, _, err := ask(t.Context(), t, p, s.url)
			check.OK(t, err)
			_, _, err = ask(t.Context(), t, p, s.url)
			if err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(tc.says)) {
				t.Errorf("the error is %v, want %q in it", err, tc.says)
			}
			check.Equal(t, "requests", s.requests.Load(), 2)
		})
	}
}

// TestTheContextEndsIt checks that the context can end a request at any time, and its connection
// with it.
func TestTheContextEndsIt(t *testing.T) {
	for name, sent := range map[string]string{"before the answer": "", "in the header": "HTTP/1.1 200", "in the body": ok[:len(ok)-1]} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(int64) answer { return answer{sent, waits} })
			p := upstream.New(s.url, upstream.Options{})
			defer p.CloseIdleConnections()
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-s.waits
				cancel()
			}()
			_, _, err := ask(ctx, t, p, s.url)
			check.ErrorIs(t, err, context.Canceled)
			check.Equal(t, "idle connections", p.Idle(), 0)
		})
	}
}

// TestOutlives checks that a request without its client is not written, and its connection is kept,
// and that a request that is written may continue.
func TestOutlives(t *testing.T) {
	hungUp := errors.New("hung up")
	hangUps, causes := make(chan func(error), 1), make(chan error, 1)
	s := serve(t, func(int64) answer {
		select {
		case hangUp := <-hangUps:
			hangUp(hungUp)
			check.ErrorIs(t, <-causes, hungUp)
		default:
		}
		return answer{ok, keeps}
	})
	p := upstream.New(s.url, upstream.Options{})
	defer p.CloseIdleConnections()
	send := func(ctx context.Context) error {
		res, err := p.Send(ctx, &upstream.Request{
			Method: http.MethodPost, Target: "/token", Host: "idp.example", Body: []byte("a=b"),
			Outlives: func(cause error) bool {
				causes <- cause
				return true
			},
		})
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, res.Body)
		return errors.Join(err, res.Body.Close())
	}
	check.OK(t, send(t.Context()))
	ended, end := context.WithCancelCause(t.Context())
	end(hungUp)
	check.ErrorIs(t, send(ended), hungUp)
	check.Equal(t, "requests", s.requests.Load(), 1)
	check.Equal(t, "idle connections", p.Idle(), 1)
	check.Eventually(t, "the connection of such a request is kept", func() bool { // unless the answer comes too early
		client, hangUp := context.WithCancelCause(t.Context())
		hangUps <- hangUp
		check.OK(t, send(client))
		return p.Idle() == 1
	})
}

// TestWire checks what is written for a request.
func TestWire(t *testing.T) {
	for name, tc := range map[string]struct {
		req  upstream.Request
		want string
	}{
		"a form": {
			upstream.Request{Method: "POST", Target: "/t?x=1", Header: http.Header{"Content-Type": {"a/b"}, "X-A": {"1", "2"}}, Body: []byte("a=b")},
			"POST /t?x=1 HTTP/1.1\r\nHost: idp\r\nContent-Length: 3\r\nContent-Type: a/b\r\nX-A: 1\r\nX-A: 2\r\n\r\na=b",
		},
		"fields of its own": {
			upstream.Request{Method: "POST", Target: "/t", Header: http.Header{"Host": {"evil"}, "Content-Length": {"9"}, "Transfer-Encoding": {"chunked"}}, Body: []byte("a")},
			"POST /t HTTP/1.1\r\nHost: idp\r\nContent-Length: 1\r\n\r\na",
		},
		"a zone":          {upstream.Request{Method: "GET", Target: "/t", Host: "[fe80::1%lo]:80"}, "GET /t HTTP/1.1\r\nHost: [fe80::1]:80\r\n\r\n"},
		"no body":         {upstream.Request{Method: "POST", Target: "/t"}, "POST /t HTTP/1.1\r\nHost: idp\r\nContent-Length: 0\r\n\r\n"},
		"GET":             {upstream.Request{Method: "GET", Target: "/t"}, "GET /t HTTP/1.1\r\nHost: idp\r\n\r\n"},
		"GET with a body": {upstream.Request{Method: "GET", Target: "/t", Body: []byte("a")}, "GET /t HTTP/1.1\r\nHost: idp\r\nContent-Length: 1\r\n\r\na"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			check.OK(t, err)
			t.Cleanup(func() { check.OK(t, l.Close()) })
			came := make(chan string, 1)
			go func() {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				b := make([]byte, len(tc.want))
				n, _ := io.ReadFull(conn, b)
				_, _ = io.WriteString(conn, ok)
				came <- string(b[:n])
			}()
			p := upstream.New(&url.URL{Scheme: "http", Host: l.Addr().String()}, upstream.Options{AnswerWithin: time.Second})
			defer p.CloseIdleConnections()
			tc.req.Host = cmp.Or(tc.req.Host, "idp")
			res, err := p.Send(t.Context(), &tc.req)
			check.OK(t, err)
			check.OK(t, res.Body.Close())
			check.Equal(t, "request", <-came, tc.want)
		})
	}
}

// TestMalformedTargets checks that nothing is sent for a target that would end the request line.
func TestMalformedTargets(t *testing.T) {
	s := serve(t, always(ok))
	p := upstream.New(s.url, upstream.Options{})
	for _, target := range []string{"/t HTTP/1.1", "/t?a b", "/t\r\nX: y", "/t\n", "/t\x7f", "/t\x00"} {
		_, err := p.Send(t.Context(), &upstream.Request{Method: http.MethodPost, Target: target, Host: "idp"}) //nolint:bodyclose // there is none
		if err == nil || !strings.Contains(err.Error(), "target") {
			t.Errorf("%q: %v", target, err)
		}
	}
	check.Equal(t, "requests", s.requests.Load(), 0)
}

// TestAnswersInTime checks that the time limit includes the body.
func TestAnswersInTime(t *testing.T) {
	for name, sent := range map[string]string{"nothing": "", "a part of the header": "HTTP/1.1 200", "a part of the body": ok[:len(ok)-1]} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(int64) answer { return answer{sent, waits} })
			p := upstream.New(s.url, upstream.Options{AnswerWithin: 20 * time.Millisecond})
			defer p.CloseIdleConnections()
			_, _, err := ask(t.Context(), t, p, s.url)
			var late net.Error
			if !errors.As(err, &late) || !late.Timeout() || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the error is %v, no timeout", err)
			}
			check.Equal(t, "idle connections", p.Idle(), 0)
		})
	}
}

// TestUnreadBodies checks that a connection with an unread answer is closed.
func TestUnreadBodies(t *testing.T) {
	s := serve(t, always(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", 1<<16, bytes.Repeat([]byte("x"), 1<<16))))
	p := upstream.New(s.url, upstream.Options{})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url.String(), http.NoBody)
	check.OK(t, err)
	res, err := p.RoundTrip(req)
	check.OK(t, err)
	check.OK(t, res.Body.Close())
	check.OK(t, res.Body.Close())
	check.Equal(t, "idle connections", p.Idle(), 0)
	check.Eventually(t, "it is closed", func() bool { return s.closed.Load() == 1 })
}

// TestIdleConnectionsEnd checks that idle connections are closed after IdleFor, without another
// request.
func TestIdleConnectionsEnd(t *testing.T) {
	s := serve(t, always(ok))
	p := upstream.New(s.url, upstream.Options{IdleFor: time.Millisecond})
	_, _, err := ask(t.Context(), t, p, s.url)
	check.OK(t, err)
	check.Eventually(t, "it is closed", func() bool { return s.closed.Load() == 1 && p.Idle() == 0 })
}

// TestTLS checks that the certificate is verified and that connections are kept.
func TestTLS(t *testing.T) {
	var connections atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.EnableHTTP2, s.Config.ErrorLog = true, log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	to, err := url.Parse(s.URL)
	check.OK(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	p := upstream.New(to, upstream.Options{TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}})
	defer p.CloseIdleConnections()
	for range 3 {
		_, text, err := ask(t.Context(), t, p, to)
		check.OK(t, err)
		check.Equal(t, "protocol", text, "HTTP/1.1")
	}
	check.Equal(t, "connections", connections.Load(), 1)

	_, _, err = ask(t.Context(), t, upstream.New(to, upstream.Options{}), to)
	var unknown x509.UnknownAuthorityError
	if !errors.As(err, &unknown) {
		t.Errorf("an unknown certificate: %v", err)
	}
}

// TestMany sends concurrent requests, each on its own connection.
func TestMany(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	defer s.Close()
	to, err := url.Parse(s.URL)
	check.OK(t, err)
	p := upstream.New(to, upstream.Options{})
	defer p.CloseIdleConnections()
	done := make(chan error)
	const goroutines, requests = 16, 50
	for i := range goroutines {
		go func() {
			var wrong error
			for n := range requests {
				said := fmt.Sprintf("%d of %d", n, i)
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader(said))
				wrong = errors.Join(wrong, err)
				res, err := p.RoundTrip(req)
				if err != nil {
					wrong = errors.Join(wrong, err)
					continue
				}
				read, err := io.ReadAll(res.Body)
				if wrong = errors.Join(wrong, err, res.Body.Close()); string(read) != said {
					wrong = errors.Join(wrong, fmt.Errorf("%q is answered by %q", said, read))
				}
			}
			done <- wrong
		}()
	}
	for range goroutines {
		check.OK(t, <-done)
	}
}
