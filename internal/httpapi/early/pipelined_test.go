package early

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
)

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
			w.on.Store(true)
			w.write(first + behind)
			w.want(http.StatusOK)
			w.write(looksLikeOne)
			w.want(http.StatusOK)
			check.Equal(t, "asked", w.asked.Load(), 0)
		})
	}
}

// one is a listener with one connection.
type one struct{ conns chan net.Conn }

func (l one) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l one) Close() error { return nil }

func (l one) Addr() net.Addr { return &net.TCPAddr{} }

// TestLongAfterTheFirst checks that after its first requests were refused, a connection has as much
// time for the next request as a new connection.
func TestLongAfterTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const readTimeout, headerTimeout = 15 * time.Second, 5 * time.Second
		g := &gate{}
		g.on.Store(true)
		var body []byte
		var failed error
		s := &http.Server{
			ReadTimeout: readTimeout, ReadHeaderTimeout: headerTimeout, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
			ConnState: Track,
			Handler:   http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { body, failed = io.ReadAll(r.Body) }),
		}
		l := one{make(chan net.Conn, 1)}
		client, server := net.Pipe()
		l.conns <- server
		go func() {
			_ = s.Serve(New(l, Options{
				Path: path, Refuser: g, IdleTimeout: 2 * time.Minute, HeaderTimeout: headerTimeout,
				Body: func(time.Duration) []byte { return []byte("{}") },
			}))
		}()
		in := bufio.NewReader(client)
		ask := func(text string, status int) {
			_, err := io.WriteString(client, text)
			check.OK(t, err)
			res, err := http.ReadResponse(in, nil)
			check.OK(t, err)
			_, err = io.Copy(io.Discard, res.Body)
			check.OK(t, err)
			check.OK(t, res.Body.Close())
			check.Equal(t, "status", res.StatusCode, status)
		}
		ask(message(basic, grant), http.StatusServiceUnavailable)
		<-time.After(time.Minute)
		_, err := io.WriteString(client, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n")
		check.OK(t, err)
		<-time.After(readTimeout - time.Second)
		ask("body", http.StatusOK)
		check.OK(t, failed)
		check.Equal(t, "body", string(body), "body")

		<-time.After(time.Minute)
		ask(message(basic, grant), http.StatusServiceUnavailable)
		close(l.conns)
		check.OK(t, client.Close())
		check.OK(t, s.Close())
	})
}

// TestSlowAfterTheFirst checks that it does not have more time.
func TestSlowAfterTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{}
		g.on.Store(true)
		client, server := net.Pipe()
		looked := &conn{Conn: server, o: &Options{
			Path: path, Refuser: g, IdleTimeout: time.Hour, HeaderTimeout: time.Second, Body: func(time.Duration) []byte { return nil },
		}}
		go func() {
			_, _ = io.WriteString(client, message(basic, grant))
			_, _ = client.Read(make([]byte, 4096))
			<-time.After(time.Minute)
			_, _ = io.WriteString(client, "GET / HTTP/1.1\r\n")
		}()
		b := make([]byte, 4096)
		n, err := looked.Read(b)
		check.OK(t, err)
		check.Equal(t, "read", string(b[:n]), "GET / HTTP/1.1\r\n")
		begun := time.Now()
		_, err = looked.Read(b)
		check.ErrorSays(t, err, "timeout")
		check.Equal(t, "after", time.Since(begun), time.Second)
		check.OK(t, client.Close())
	})
}
