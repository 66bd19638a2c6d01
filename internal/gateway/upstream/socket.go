package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// socket is a connection, above its TLS, that tracks whether the upstream may have received a part
// of a request.
type socket struct {
	net.Conn
	plain *counted // below the TLS
	begun int64    // bytes written before the request

	mu     sync.Mutex
	failed bool     // a write failed
	ended  bool     // the upstream has closed its side
	after  tcpState // at the time of closing
	closed bool
}

// counted is a TCP connection that counts the bytes written.
type counted struct {
	net.Conn
	raw   syscall.RawConn // nil: not available
	wrote atomic.Int64
}

// Write implements [io.Writer].
func (c *counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.wrote.Add(int64(n))
	return n, err
}

// tcpState is the kernel's state of a connection. Zero: unknown.
type tcpState struct {
	acked uint64 // bytes that the peer has acknowledged, and one more for the handshake
	reset bool   // reset, or closed by both ends
}

func newSocket(plain net.Conn) *socket {
	out := &counted{Conn: plain}
	if c, ok := plain.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			out.raw = raw
		}
	}
	return &socket{Conn: out, plain: out}
}

// secure begins TLS. It closes the connection if that fails.
func (s *socket) secure(ctx context.Context, config *tls.Config) error {
	t := tls.Client(s.plain, config)
	if err := t.HandshakeContext(ctx); err != nil {
		_ = s.plain.Close()
		return err
	}
	s.Conn = t
	return nil
}

// begin is called before each request.
func (s *socket) begin() { s.begun = s.plain.wrote.Load() }

// Write implements [io.Writer].
func (s *socket) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	if err != nil {
		s.mu.Lock()
		s.failed = true
		s.mu.Unlock()
	}
	return n, err
}

// Read implements [io.Reader].
func (s *socket) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if errors.Is(err, io.EOF) {
		s.mu.Lock()
		s.ended = !s.failed // after a failed write, EOF may be a reset that was already reported
		s.mu.Unlock()
	}
	return n, err
}

// resetWithin is how long to wait for a reset, which shows that the request was discarded.
const resetWithin = 500 * time.Millisecond

// Close implements [io.Closer].
func (s *socket) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed, s.after = true, stateOf(s.plain.raw)
		s.awaitReset()
	}
	return s.Conn.Close()
}

// awaitReset waits for a reset if the upstream has closed its side without acknowledging the
// written data. The data may still be in transit.
func (s *socket) awaitReset() {
	if s.unwritten() || !s.ended {
		return
	}
	look, began := time.NewTicker(time.Millisecond), time.Now()
	defer look.Stop()
	for s.unread() && !s.after.reset && time.Since(began) < resetWithin {
		<-look.C
		s.after = stateOf(s.plain.raw)
	}
}

// unwritten reports whether nothing of the request was written.
func (s *socket) unwritten() bool { return s.plain.wrote.Load() == s.begun }

// unread reports whether the upstream has acknowledged nothing of the request. Earlier requests
// were answered, so they were acknowledged. If one was not, unread is false.
func (s *socket) unread() bool { return s.after.acked > 0 && int64(s.after.acked-1) == s.begun } //nolint:gosec // bytes of one connection

// untouched reports whether the upstream received nothing of a failed request. It is called after
// the connection is closed. Either nothing was written, or the upstream had closed the connection
// and discarded the data. Its FIN acknowledges everything it had received, and its reset shows that
// later data is not read. Both are needed: a reset alone may follow a request that was half read,
// and after a FIN alone the upstream may still read.
func (s *socket) untouched() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unwritten() || s.ended && s.after.reset && s.unread()
}
