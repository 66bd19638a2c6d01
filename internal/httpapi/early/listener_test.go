package early

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oauth-server/internal/check"
)

// refuser refuses requests of shop while on is set.
type refuser struct {
	on     atomic.Bool
	looked atomic.Int64 // requests that were checked
	asked  atomic.Int64
	last   atomic.Pointer[asked]
}

type asked struct {
	*http.Request
	form string
}

func (r *refuser) Refusing() bool {
	r.looked.Add(1)
	return r.on.Load()
}

func (r *refuser) Refuse(_ net.Conn, req *http.Request, form string) (time.Duration, []byte) {
	r.asked.Add(1)
	r.last.Store(&asked{req, form})
	if id, _, _ := req.BasicAuth(); id != "shop" || form != grant {
		return 0, nil
	}
	return 7 * time.Second, []byte(`{"error":"busy"}`)
}

// world is a server with a handler that answers 200.
type world struct {
	refuser
	t       *testing.T
	handled atomic.Int64
	idle    atomic.Int64  // how often the connection became idle
	ok      int64         // answers of the handler
	hold    chan struct{} // the handler waits for it, unless it is nil
	conn    net.Conn
	in      *bufio.Reader
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(t, err)
	s := &http.Server{
		ReadHeaderTimeout: time.Minute,
		ConnState: func(c net.Conn, state http.ConnState) {
			Track(c, state)
			if state == http.StateIdle {
				w.idle.Add(1)
			}
		},
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.handled.Add(1)
			if w.hold != nil {
				<-w.hold
			}
		}),
	}
	ended := make(chan error, 1)
	go func() {
		ended <- s.Serve(New(l, Options{Path: "/token", Refuser: &w.refuser, IdleTimeout: time.Minute}))
	}()
	w.conn, err = net.Dial("tcp", l.Addr().String())
	check.OK(t, err)
	w.in = bufio.NewReader(w.conn)
	t.Cleanup(func() {
		check.OK(t, w.conn.Close())
		check.OK(t, s.Close())
		check.ErrorIs(t, <-ended, http.ErrServerClosed)
	})
	return w
}

func (w *world) write(text string) {
	w.t.Helper()
	_, err := io.WriteString(w.conn, text)
	check.OK(w.t, err)
}

func (w *world) want(status int) http.Header {
	w.t.Helper()
	res, err := http.ReadResponse(w.in, nil)
	check.OK(w.t, err)
	body, err := io.ReadAll(res.Body)
	check.OK(w.t, err)
	check.OK(w.t, res.Body.Close())
	check.Equal(w.t, "status", res.StatusCode, status)
	if status == http.StatusOK { // an earlier request would arrive during another one
		w.ok++
		check.Eventually(w.t, "the connection is idle", func() bool { return w.idle.Load() >= w.ok })
	} else {
		check.Equal(w.t, "body", string(body), `{"error":"busy"}`)
	}
	return res.Header
}

// TestRefused refuses requests on one connection, between requests that are handled.
func TestRefused(t *testing.T) {
	w := newWorld(t)
	w.write(message(basic, grant))
	w.want(200)
	check.Equal(t, "asked while nothing is refused", w.asked.Load(), 0)
	for range 2 {
		w.on.Store(true)
		for range 3 {
			w.write(message(basic, grant))
			header := w.want(503)
			last := w.last.Load()
			check.Equal(t, "request", last.Method+" "+last.RequestURI+" "+last.Header.Get("Authorization")+" "+last.form, "POST /token Basic c2hvcDpzZWNyZXQ= "+grant)
			check.Equal(t, "Retry-After", header.Get("Retry-After"), "7")
			check.Equal(t, "X-Content-Type-Options", header.Get("X-Content-Type-Options"), "nosniff")
			check.Equal(t, "Cache-Control", header.Get("Cache-Control"), "no-store")
			_, err := http.ParseTime(header.Get("Date"))
			check.OK(t, err)
		}
		w.write(message("", "client_id=other&client_secret=a&"+grant))
		w.want(200)
		w.write(message(basic+"Accept: a\r\n", "x=y"))
		w.want(200)
		w.on.Store(false)
		w.write(message(basic, grant))
		w.want(200)
	}
	check.Equal(t, "handled", w.handled.Load(), 7)
	check.Equal(t, "asked", w.asked.Load(), 10)
}

// TestFirstOnItsConnection checks that the first request of a connection goes to the handler.
func TestFirstOnItsConnection(t *testing.T) {
	w := newWorld(t)
	w.on.Store(true)
	w.write(message(basic, grant))
	w.want(200)
	check.Equal(t, "asked", w.asked.Load(), 0)
	w.write(message(basic, grant))
	w.want(503)
}

// TestInPieces checks that a request that arrives in pieces, or with other data, goes to the
// handler, and that no data is lost or read twice.
func TestInPieces(t *testing.T) {
	for name, pieces := range map[string][]string{
		"two at once":         {message(basic, grant) + message(basic, grant)},
		"a half of it":        {message(basic, grant)[:40], message(basic, grant)[40:] + message(basic, grant)},
		"without its body":    {strings.TrimSuffix(message(basic, grant), grant), grant + message(basic, grant)},
		"its first character": {"P", message(basic, grant)[1:] + message(basic, grant)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(message(basic, grant))
			w.want(200)
			w.on.Store(true)
			for i, piece := range pieces {
				if i > 0 { // the data was read
					check.Eventually(t, "the piece before is taken", func() bool { return w.looked.Load() == 1 })
				}
				w.write(piece)
			}
			w.want(200)
			w.want(200)
			check.Equal(t, "asked", w.asked.Load(), 0)
		})
	}
}

// TestDuringAnother covers a request that arrives while another is handled, so net/http has already
// read its first byte.
func TestDuringAnother(t *testing.T) {
	w := newWorld(t)
	w.hold = make(chan struct{})
	w.write(message(basic, grant))
	check.Eventually(t, "it is handled", func() bool { return w.handled.Load() == 1 })
	w.on.Store(true)
	w.write("X" + message(basic, grant)) // a request with the method XPOST
	close(w.hold)
	w.want(200)
	w.want(200)
	check.Equal(t, "asked", w.asked.Load(), 0)
	w.write(message(basic, grant))
	w.want(503)
}

// TestBehindAnother covers data after a request in the same read. It is in the buffer of net/http,
// so the data after it does not start a request, whatever it looks like.
func TestBehindAnother(t *testing.T) {
	first, looksLikeOne := "GET / HTTP/1.1\r\nHost: x\r\n\r\n", message(basic, grant)
	for name, behind := range map[string]string{
		"the header of one with a body": fmt.Sprintf("POST /other HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", len(looksLikeOne)),
		"its first character":           "X", // a request with the method XPOST
		"a field that is not complete":  "GET /other HTTP/1.1\r\nX: ",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(message(basic, grant))
			w.want(http.StatusOK)
			w.on.Store(true)
			w.write(first + behind)
			w.want(http.StatusOK)
			w.write(looksLikeOne)
			w.want(http.StatusOK)
			check.Equal(t, "asked", w.asked.Load(), 0)
		})
	}
}
