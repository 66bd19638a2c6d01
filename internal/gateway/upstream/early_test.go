package upstream_test

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway/upstream"
)

// halting is a connection that writes the second half of a request when a channel is closed.
type halting struct {
	net.Conn
	half <-chan struct{}
}

func (h halting) Write(b []byte) (int, error) {
	n, err := h.Conn.Write(b[:len(b)/2])
	if err != nil {
		return n, err
	}
	<-h.half
	more, err := h.Conn.Write(b[n:])
	return n + more, err
}

// TestEarlyAnswer checks that the answer is read even if a server answers without reading the body
// and closes the connection.
func TestEarlyAnswer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(t, err)
	t.Cleanup(func() { check.OK(t, l.Close()) })
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Read(make([]byte, 1))
		_, _ = io.WriteString(conn, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig")
		_ = conn.Close() // unread data makes this a reset
	}()
	p := upstream.New(&url.URL{Scheme: "http", Host: l.Addr().String()}, upstream.Options{})
	defer p.CloseIdleConnections()
	p.Wrap(func(c net.Conn) net.Conn { return halting{c, gone} })
	res, err := p.Send(t.Context(), &upstream.Request{Method: http.MethodPost, Target: "/token", Host: "idp.example", Body: make([]byte, 64<<10)})
	check.OK(t, err)
	body, err := io.ReadAll(res.Body)
	check.OK(t, err)
	check.OK(t, res.Body.Close())
	check.Equal(t, "status", res.StatusCode, http.StatusRequestEntityTooLarge)
	check.Equal(t, "body", string(body), "big")
	check.Equal(t, "idle connections", p.Idle(), 0)
}
