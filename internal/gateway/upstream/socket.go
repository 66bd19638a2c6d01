package upstream

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// socket is a connection, above its TLS, that knows whether the upstream may have got something of a request.
type socket struct {
	net.Conn
	raw syscall.RawConn // beneath the TLS; nil: it has none

	mu     sync.Mutex
	wrote  bool // something of the request
	failed bool // writing it
	ended  bool // the upstream has closed its side
	before tcpState
	after  tcpState // when the connection was closed
	closed bool
}

// tcpState is what the system knows of a connection; zero: nothing.
type tcpState struct {
	acked uint64 // bytes that the other end has acknowledged
	reset bool   // or closed at both ends
}

func newSocket(secured, plain net.Conn) *socket {
	s := &socket{Conn: secured}
	if c, ok := plain.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			s.raw = raw
		}
	}
	return s
}

// begin is called before each request.
func (s *socket) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrote, s.before = false, stateOf(s.raw)
}

// Write implements [io.Writer].
func (s *socket) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrote, s.failed = s.wrote || n > 0, s.failed || err != nil
	return n, err
}

// Read implements [io.Reader].
func (s *socket) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if errors.Is(err, io.EOF) {
		s.mu.Lock()
		s.ended = !s.failed // which may have been the reset, that is told once
		s.mu.Unlock()
	}
	return n, err
}

// resetWithin is how long the reset is waited for that shows what became of a request.
const resetWithin = 500 * time.Millisecond

// Close implements [io.Closer].
func (s *socket) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed, s.after = true, stateOf(s.raw)
		s.awaitReset()
	}
	return s.Conn.Close()
}

// awaitReset waits while the upstream has closed its side without acknowledging what was written, which may still be on its way.
func (s *socket) awaitReset() {
	if !s.wrote || !s.ended || s.before.acked == 0 {
		return
	}
	look, began := time.NewTicker(time.Millisecond), time.Now()
	defer look.Stop()
	for s.after.acked == s.before.acked && !s.after.reset && time.Since(began) < resetWithin {
		<-look.C
		s.after = stateOf(s.raw)
	}
}

// untouched reports whether the upstream has got nothing of a request that failed, after the connection is closed. Either nothing
// was written; or the upstream had closed the connection, and discarded what came. Its FIN acknowledges whatever it had got, and its
// reset says that nobody reads what comes afterwards. Alone, a reset may be for a request that was half read, and a FIN of an
// upstream that reads on.
func (s *socket) untouched() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The requests before were acknowledged, so 0 is of a system that does not say.
	return !s.wrote || s.ended && s.after.reset && s.after.acked == s.before.acked && s.before.acked > 0
}
