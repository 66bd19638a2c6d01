package early

import (
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"
)

// Gate decides about requests. Its methods must be safe for concurrent use.
type Gate interface {
	// Refusing reports whether token requests are refused at the moment. It is asked at every read.
	Refusing() bool
	// Refuse reports whether a request that came on a connection is refused for certain, and when its caller is asked to
	// come again. A request that is not refused comes to the gate again.
	Refuse(c net.Conn, r *Request) (retryAfter time.Duration, refused bool)
}

// Options configure a [Listener].
type Options struct {
	Path string // of the token endpoint
	Gate Gate
	// Body is the body of the answer for a time to come again, JSON.
	Body func(retryAfter time.Duration) []byte
	// Refused is called for each request that is refused, before its answer is written. It must not block. Nil disables it.
	Refused func(*Refusal)
	// IdleTimeout and HeaderTimeout, its ReadHeaderTimeout, are those of the server.
	IdleTimeout, HeaderTimeout time.Duration
}

// Refusal is a request that was refused.
type Refusal struct {
	Request  Request
	Raw      []byte   // the whole request; valid until [Options].Refused returns
	Remote   net.Addr // of the peer
	Received time.Time
	Sent     int // bytes of the body of the answer
}

// Listener is a listener whose connections look at the requests that come.
type Listener struct {
	net.Listener
	o Options
}

// New makes a listener of another one.
func New(l net.Listener, o Options) *Listener { return &Listener{l, o} }

// Accept implements [net.Listener].
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, o: &l.o}, nil
}

// Track takes the state of a connection from [http.Server].ConnState.
func Track(c net.Conn, state http.ConnState) {
	if looked, ok := c.(*conn); ok && state == http.StateIdle {
		looked.stage.Store(ended)
	}
}

// The stages between two requests on a connection. When one has ended, net/http sets the deadline for an idle connection and
// reads; but if something is in its buffer already, it reads only after it has set the next deadline.
const (
	within  int32 = iota // a request, or its beginning is in the buffer
	ended                // the deadline is not set
	between              // it is
)

type conn struct {
	net.Conn
	o      *Options
	stage  atomic.Int32
	buffer int          // the size of the buffer of net/http, which is how much the first read asks for; 0: there was none
	lag    atomic.Int64 // how long after net/http began to wait for its first request that came; 0: nothing to make up for
}

// begins reports whether what a read of so many bytes returns begins a request: nothing that has been read is waiting in the
// buffer, which would leave less room, as would the byte that net/http reads to see callers hang up.
func (c *conn) begins(room int) bool { return c.stage.Load() == between && room == c.buffer }

// SetReadDeadline implements [net.Conn].
func (c *conn) SetReadDeadline(t time.Time) error {
	if !c.stage.CompareAndSwap(between, within) {
		c.stage.CompareAndSwap(ended, between)
	}
	if lag := c.lag.Swap(0); lag > 0 && !t.IsZero() {
		t = t.Add(time.Duration(lag))
	}
	return c.Conn.SetReadDeadline(t)
}

// NetConn returns the connection beneath, as that of [crypto/tls.Conn] does.
func (c *conn) NetConn() net.Conn { return c.Conn }

// SyscallConn implements [syscall.Conn].
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	if s, ok := c.Conn.(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return nil, syscall.ENOTSUP
}

// CloseWrite is what net/http calls before it closes a connection with something unread on it, so that the answer arrives.
func (c *conn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// writeTimeout is how long a caller may take to take an answer.
const writeTimeout = 5 * time.Second

// Read implements [net.Conn].
func (c *conn) Read(b []byte) (int, error) {
	if c.buffer == 0 {
		c.buffer = len(b)
		return c.first(b)
	}
	begins := c.begins(len(b))
	for {
		n, err := c.Conn.Read(b)
		if !begins || n == 0 || err != nil {
			return n, err
		}
		switch refused, err := c.look(b[:n]); {
		case err != nil:
			return 0, err
		case !refused:
			return n, nil
		}
	}
}

// first is the first Read. Requests that are refused then come within what net/http takes for the wait for one, and its
// deadlines for that are counted from the beginning of the wait.
func (c *conn) first(b []byte) (int, error) {
	begun, after := time.Now(), false
	for {
		n, err := c.Conn.Read(b)
		if n == 0 || err != nil {
			return n, err
		}
		refused, err := c.look(b[:n])
		switch {
		case err != nil:
			return 0, err
		case refused:
			after = true
			continue
		case !after:
			return n, nil
		}
		now := time.Now()
		c.lag.Store(int64(now.Sub(begun)))
		if c.o.HeaderTimeout == 0 {
			return n, nil
		}
		return n, c.Conn.SetReadDeadline(now.Add(c.o.HeaderTimeout))
	}
}

// look refuses the request that b begins, if it is to be refused early.
func (c *conn) look(b []byte) (refused bool, err error) {
	if !c.o.Gate.Refusing() {
		return false, nil
	}
	r, ok := parse(b, c.o.Path)
	if !ok {
		return false, nil
	}
	received := time.Now()
	after, refused := c.o.Gate.Refuse(c, &r)
	if !refused {
		return false, nil
	}
	body := c.o.Body(after)
	if c.o.Refused != nil {
		c.o.Refused(&Refusal{Request: r, Raw: b, Remote: c.RemoteAddr(), Received: received, Sent: len(body)})
	}
	return true, c.refuse(after, body)
}

// refuse answers a request.
func (c *conn) refuse(after time.Duration, body []byte) error {
	now := time.Now()
	answer := fmt.Appendf(make([]byte, 0, 512), "HTTP/1.1 503 Service Unavailable\r\n"+
		"Content-Type: application/json\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\nPragma: no-cache\r\nRetry-After: %d\r\nDate: %s\r\nContent-Length: %d\r\n\r\n%s",
		int(after.Seconds()), now.UTC().Format(http.TimeFormat), len(body), body)
	if err := c.SetWriteDeadline(now.Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := c.Write(answer); err != nil {
		return err
	}
	if err := c.SetWriteDeadline(time.Time{}); err != nil {
		return err
	}
	return c.Conn.SetReadDeadline(now.Add(c.o.IdleTimeout)) // as after any answer
}
