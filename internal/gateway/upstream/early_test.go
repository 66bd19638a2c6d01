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

// halting is a body with a second half that comes when a channel is closed.
type halting struct {
	left int
	half <-chan struct{}
}

func (h *halting) Read(b []byte) (int, error) {
	if h.left == 0 {
		return 0, io.EOF
	}
	if h.left <= earlyBody/2 {
		<-h.half
	}
	n := min(len(b), h.left, earlyBody/4)
	h.left -= n
	return n, nil
}

const earlyBody = 64 << 10

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
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://idp.example/token", &halting{earlyBody, gone})
	check.OK(t, err)
	req.ContentLength = earlyBody
	res, err := p.RoundTrip(req)
	check.OK(t, err)
	body, err := io.ReadAll(res.Body)
	check.OK(t, err)
	check.OK(t, res.Body.Close())
	check.Equal(t, "status", res.StatusCode, http.StatusRequestEntityTooLarge)
	check.Equal(t, "body", string(body), "big")
	check.Equal(t, "idle connections", p.Idle(), 0)
}
