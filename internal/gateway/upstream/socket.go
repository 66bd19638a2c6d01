package upstream

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// socket is a connection, above its TLS, that tracks whether the upstream may have received a part
// of a request.
type socket struct {
	net.Conn
	raw syscall.RawConn // below the TLS; nil: not available

	mu     sync.Mutex
	wrote  bool // a part of the request was written
	failed bool // a write failed
	ended  bool // the upstream has closed its side
	before tcpState
	after  tcpState // at the time of closing
	closed bool
}

// tcpState is the kernel's state of a connection. Zero: unknown.
type tcpState struct {
	acked uint64 // bytes that the peer has acknowledged
	reset bool   // reset, or closed by both ends
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
		s.closed, s.after = true, stateOf(s.raw)
		s.awaitReset()
	}
	return s.Conn.Close()
}

// awaitReset waits for a reset if the upstream has closed its side without acknowledging the
// written data. The data may still be in transit.
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

// untouched reports whether the upstream received nothing of a failed request. It is called after
// the connection is closed. Either nothing was written, or the upstream had closed the connection
// and discarded the data. Its FIN acknowledges everything it had received, and its reset shows that
// later data is not read. Both are needed: a reset alone may follow a request that was half read,
// and after a FIN alone the upstream may still read.
func (s *socket) untouched() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Earlier requests were acknowledged, so 0 means that the system does not report the number.
	return !s.wrote || s.ended && s.after.reset && s.after.acked == s.before.acked && s.before.acked > 0
}
