package upstream_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway/upstream"
)

// closing is an upstream that answers the first request of each connection, and then acts on the
// first connection.
type closing struct {
	url      *url.URL
	noticed  chan struct{}  // the client has closed its end, too; nil: do not wait for it
	act      func(net.Conn) // called with the TCP connection
	now, did chan struct{}
	due      atomic.Bool // it acts before the next write of the client
	half     bool        // after the first half of that write
	requests atomic.Int64
	begun    atomic.Int64 // connections
}

func newClosing(t *testing.T, config *tls.Config, act func(net.Conn)) *closing {
	t.Helper()
	smallest := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error { // so that a request does not fit into the window
		return c.Control(func(fd uintptr) {
			check.OK(t, syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 1))
		})
	}}
	l, err := smallest.Listen(t.Context(), "tcp", "127.0.0.1:0")
	check.OK(t, err)
	t.Cleanup(func() { check.OK(t, l.Close()) })
	c := &closing{url: &url.URL{Scheme: "http", Host: l.Addr().String()}, act: act, now: make(chan struct{}), did: make(chan struct{})}
	if config != nil {
		c.url.Scheme = "https"
	}
	go func() {
		for {
			plain, err := l.Accept()
			if err != nil {
				return
			}
			conn := plain
			if config != nil {
				conn = tls.Server(plain, config)
			}
			go c.serve(plain, conn, c.begun.Add(1) == 1)
		}
	}()
	return c
}

func (c *closing) serve(plain, conn net.Conn, first bool) {
	in := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			break
		}
		_, _ = io.Copy(io.Discard, req.Body)
		c.requests.Add(1)
		_, _ = io.WriteString(conn, ok)
		if first {
			<-c.now
			c.act(plain)
			close(c.did)
			first = false
		}
	}
	_ = conn.Close()
}

// post sends a request with a body.
func post(t *testing.T, transport http.RoundTripper, to *url.URL) (status int, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to.String()+"/token", strings.NewReader(strings.Repeat("a", 3000)))
	check.OK(t, err)
	req.GetBody = nil // a proxy has none
	res, err := transport.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, res.Body)
	check.OK(t, err)
	check.OK(t, res.Body.Close())
	return res.StatusCode, nil
}

// acting is a connection that lets the upstream act before the next request is written.
type acting struct {
	*net.TCPConn
	c *closing
}

func (a acting) Write(b []byte) (int, error) {
	begun := 0
	if a.c.due.CompareAndSwap(true, false) {
		if a.c.half {
			begun, _ = a.TCPConn.Write(b[:len(b)/2])
		}
		a.c.now <- struct{}{}
		<-a.c.did
		if a.c.noticed != nil {
			<-a.c.noticed
		}
	}
	n, err := a.TCPConn.Write(b[begun:])
	return begun + n, err
}

func (c *closing) wrap(conn net.Conn) net.Conn {
	return acting{conn.(*net.TCPConn), c} //nolint:forcetypeassert // of a TCP dialer
}

// noticing reports when it is closed.
type noticing struct {
	acting
	closed chan<- struct{}
}

func (n noticing) Close() error {
	err := n.acting.Close()
	select {
	case n.closed <- struct{}{}:
	default:
	}
	return err
}

// TestClosedMeanwhile checks that a request is sent on another connection if the upstream closes
// the idle one before it has received any of it, and only then.
func TestClosedMeanwhile(t *testing.T) {
	certified := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(certified.Close)
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	trusting := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	serving := &tls.Config{Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS12}
	closes := func(c net.Conn) { _ = c.Close() }
	resets := func(c net.Conn) {
		_ = c.(*net.TCPConn).SetLinger(0) //nolint:forcetypeassert // of a TCP listener
		_ = c.Close()
	}
	halfCloses := func(c net.Conn) { _ = c.(*net.TCPConn).CloseWrite() } //nolint:forcetypeassert // as above
	readsHalf := func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096))
		_ = c.Close()
	}
	for name, tc := range map[string]struct {
		act       func(net.Conn)
		config    *tls.Config
		transport bool // of net/http
		again     bool
	}{
		"closed":                    {closes, nil, false, true},
		"reset":                     {resets, nil, false, true},
		"closed at one end":         {halfCloses, nil, false, false},
		"closed after a half":       {readsHalf, nil, false, false},
		"TLS, closed after a half":  {readsHalf, serving, false, false},
		"TLS, closed":               {closes, serving, false, true},
		"TLS, reset":                {resets, serving, false, true},
		"TLS, closed at one end":    {halfCloses, serving, false, false},
		"net/http, closed":          {closes, nil, true, true},
		"net/http, reset":           {resets, nil, true, true},
		"net/http with TLS, closed": {closes, serving, true, true},
		"net/http with TLS, reset":  {resets, serving, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newClosing(t, tc.config, tc.act)
			s.half = strings.HasSuffix(name, "half")
			var transport http.RoundTripper
			if tc.transport {
				s.noticed = make(chan struct{}, 2)
				own := &http.Transport{TLSClientConfig: trusting, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
					c, err := new(net.Dialer).DialContext(ctx, network, address)
					if err != nil {
						return nil, err
					}
					return noticing{s.wrap(c).(acting), s.noticed}, nil
				}}
				transport = upstream.NewResender(own)
				defer own.CloseIdleConnections()
			} else {
				pool := upstream.New(s.url, upstream.Options{TLS: trusting})
				pool.Wrap(s.wrap)
				transport = pool
				defer pool.CloseIdleConnections()
			}
			_, err := post(t, transport, s.url)
			check.OK(t, err)
			s.due.Store(true)
			status, err := post(t, transport, s.url)
			if tc.again {
				check.OK(t, err)
				check.Equal(t, "status", status, http.StatusOK)
			} else if err == nil {
				t.Error("it was sent again, though the upstream may have read it")
			}
			if tc.again {
				check.Equal(t, "connections", s.begun.Load(), 2)
				check.Equal(t, "requests", s.requests.Load(), 2)
			} else {
				check.Equal(t, "connections", s.begun.Load(), 1)
			}
		})
	}
}

// TestHalfRead checks that a request is not sent again if the upstream has read a part of it.
func TestHalfRead(t *testing.T) {
	s := newClosing(t, nil, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1))
		_ = c.Close()
	})
	go func() { s.now <- struct{}{} }()
	pool := upstream.New(s.url, upstream.Options{})
	defer pool.CloseIdleConnections()
	_, err := post(t, pool, s.url)
	check.OK(t, err)
	if _, err = post(t, pool, s.url); err == nil {
		t.Error("it was sent again")
	}
	check.Equal(t, "connections", s.begun.Load(), 1)
}
