package upstream_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway/upstream"
)

// gathering buffers writes until it is flushed, so several TLS records arrive in one read.
type gathering struct {
	net.Conn
	on   bool
	kept []byte
}

func (g *gathering) Write(b []byte) (int, error) {
	if !g.on {
		return g.Conn.Write(b)
	}
	g.kept = append(g.kept, b...)
	return len(b), nil
}

func (g *gathering) flush() { _, _ = g.Conn.Write(g.kept); g.kept, g.on = nil, false }

// TestMoreThanAnAnswerOverTLS checks that data after an answer, in the buffers of TLS, is not read
// as the answer to the next request.
func TestMoreThanAnAnswerOverTLS(t *testing.T) {
	certified := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(certified.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(t, err)
	t.Cleanup(func() { check.OK(t, l.Close()) })
	go func() {
		for {
			plain, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				g := &gathering{Conn: plain}
				c := tls.Server(g, &tls.Config{Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS12})
				defer func() { _ = c.Close() }()
				b := make([]byte, 4096)
				for {
					if _, err := c.Read(b); err != nil {
						return
					}
					g.on = true
					_, _ = io.WriteString(c, ok)
					_, _ = io.WriteString(c, strings.Replace(ok, "ok", "no", 1)) // in its own record
					g.flush()
				}
			}()
		}
	}()
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	to := &url.URL{Scheme: "https", Host: l.Addr().String()}
	p := upstream.New(to, upstream.Options{TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}})
	t.Cleanup(p.CloseIdleConnections)
	for range 3 {
		status, text, err := ask(context.Background(), t, p, to)
		check.OK(t, err)
		check.Equal(t, "status", status, http.StatusOK)
		check.Equal(t, "answer", text, "ok")
	}
}
