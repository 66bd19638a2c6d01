package early

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Refuser decides whether to refuse requests. Its methods must be safe for concurrent use.
type Refuser interface {
	// Refusing reports whether token requests are currently refused. It is called at every read.
	Refusing() bool
	// Refuse returns the JSON body of the answer to a request on a connection, and when the client
	// should retry. A nil body means that the request is not refused here. It is then checked again
	// later. form is the body of the request.
	Refuse(c net.Conn, r *http.Request, form string) (retryAfter time.Duration, body []byte)
}

// Options configure a [Listener].
type Options struct {
	Path        string // of the token endpoint
	Refuser     Refuser
	IdleTimeout time.Duration // of the server
}

// Listener is a listener with connections that inspect incoming requests.
type Listener struct {
	net.Listener
	o    Options
	line string // first line of a token request
}

// New returns a Listener that wraps l.
func New(l net.Listener, o Options) *Listener {
	return &Listener{l, o, "POST " + o.Path + " HTTP/1.1\r\n"}
}

// Accept implements [net.Listener].
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	looked := &conn{Conn: c, of: l}
	looked.dice.Store(rand.Uint32()) //nolint:gosec // G404: spreads load
	return looked, nil
}

// Track records the state of a connection. Call it from [http.Server].ConnState.
func Track(c net.Conn, state http.ConnState) {
	if looked, ok := c.(*conn); ok && state == http.StateIdle {
		looked.stage.Store(ended)
	}
}

// The stages between two requests on a connection. After a request, net/http sets the deadline for
// an idle connection and reads. If its buffer already contains data, it reads only after it has set
// the next deadline. The first request of a connection is within, because net/http counts its
// deadlines from the start of the connection.
const (
	within  int32 = iota // in a request, or its start is in the buffer
	ended                // the idle deadline is not set yet
	between              // the idle deadline is set
)

type conn struct {
	net.Conn
	of     *Listener
	stage  atomic.Int32
	buffer int // size of the net/http buffer, which the first read asks for; 0: no read yet
	dice   atomic.Uint32
}

// Dice returns the random number that decides about the next request, here and later. A decision
// replaces it.
func (c *conn) Dice() *atomic.Uint32 { return &c.dice }

// begins reports whether a read with this much room starts a request. If unread data were in the
// buffer, there would be less room. The same holds for the byte that net/http reads to detect that
// callers hang up.
func (c *conn) begins(room int) bool { return c.stage.Load() == between && room == c.buffer }

// SetReadDeadline implements [net.Conn].
func (c *conn) SetReadDeadline(t time.Time) error {
	if !c.stage.CompareAndSwap(between, within) {
		c.stage.CompareAndSwap(ended, between)
	}
	return c.Conn.SetReadDeadline(t)
}

// NetConn returns the underlying connection, like the method of [crypto/tls.Conn].
func (c *conn) NetConn() net.Conn { return c.Conn }

// CloseWrite implements the method that net/http calls before it closes a connection with unread
// data, so the answer still arrives.
func (c *conn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// writeTimeout bounds the time to write an answer.
const writeTimeout = 5 * time.Second

// Read implements [net.Conn].
func (c *conn) Read(b []byte) (int, error) {
	if c.buffer == 0 {
		c.buffer = len(b)
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

// look refuses the request at the start of b, if it can be refused early.
func (c *conn) look(b []byte) (refused bool, err error) {
	if !c.of.o.Refuser.Refusing() {
		return false, nil
	}
	r, form, ok := parse(b, c.of.line)
	if !ok {
		return false, nil
	}
	after, body := c.of.o.Refuser.Refuse(c, r, form)
	if body == nil {
		return false, nil
	}
	return true, c.refuse(after, body)
}

// refuse writes the answer to a refused request.
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
	return c.Conn.SetReadDeadline(now.Add(c.of.o.IdleTimeout)) // as after any answer
}
