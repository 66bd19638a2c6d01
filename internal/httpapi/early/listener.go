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
	// Refusing reports whether requests are refused at the moment. It is asked at every read.
	Refusing() bool
	// Refuse reports whether a request is refused for certain, and when its caller is asked to come again. A
	// request that is not refused comes to the gate again.
	Refuse(r *Request) (retryAfter time.Duration, refused bool)
}

// Options configure a [Listener].
type Options struct {
	Path string // of the token endpoint
	Gate Gate
	// Body is the body of the answer for a time to come again, JSON.
	Body func(retryAfter time.Duration) []byte
	// IdleTimeout is that of the server.
	IdleTimeout time.Duration
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
	looked := &conn{Conn: c, o: &l.o}
	looked.begins.Store(true)
	return looked, nil
}

// Track takes the state of a connection from [http.Server].ConnState.
func Track(c net.Conn, state http.ConnState) {
	if looked, ok := c.(*conn); ok && state == http.StateIdle {
		looked.begins.Store(!looked.ahead.Swap(false))
	}
}

type conn struct {
	net.Conn
	o      *Options
	begins atomic.Bool // what is read next begins a request
	ahead  atomic.Bool // the first byte of the next request has been read: net/http does that to see callers hang up
}

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
	for {
		n, err := c.Conn.Read(b)
		if n == 0 || !c.begins.Load() {
			if n == 1 && len(b) == 1 {
				c.ahead.Store(true)
			}
			return n, err
		}
		if err != nil || !c.o.Gate.Refusing() {
			c.begins.Store(false)
			return n, err
		}
		r, ok := parse(b[:n], c.o.Path)
		if !ok {
			c.begins.Store(false)
			return n, nil
		}
		after, refused := c.o.Gate.Refuse(&r)
		if !refused {
			c.begins.Store(false)
			return n, nil
		}
		if err := c.refuse(after); err != nil {
			return 0, err
		}
	}
}

// refuse answers a request.
func (c *conn) refuse(after time.Duration) error {
	now := time.Now()
	body := c.o.Body(after)
	answer := fmt.Appendf(make([]byte, 0, 512), "HTTP/1.1 503 Service Unavailable\r\n"+
		"Content-Type: application/json\r\nCache-Control: no-store\r\nPragma: no-cache\r\nRetry-After: %d\r\nDate: %s\r\nContent-Length: %d\r\n\r\n%s",
		int(after.Seconds()), now.UTC().Format(http.TimeFormat), len(body), body)
	if err := c.SetWriteDeadline(now.Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := c.Write(answer); err != nil {
		return err
	}
	return c.SetReadDeadline(now.Add(c.o.IdleTimeout)) // as after any answer
}
