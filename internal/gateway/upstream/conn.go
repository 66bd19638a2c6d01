package upstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// maxHeader is the maximum header size of an answer in bytes.
const maxHeader = 1 << 20

// maxInterim is the maximum number of interim answers before the final one.
const maxInterim = 5

// conn is a connection to the upstream. One request uses it at a time.
type conn struct {
	*socket
	used  bool          // by an earlier request
	cut   atomic.Bool   // the context of the request has ended it
	gone  atomic.Bool   // the context has ended, and the request has outlived it
	in    *bufio.Reader // reads from conn, see Read
	out   *bufio.Writer
	left  int64       // bytes that may still be read
	since time.Time   // when it became idle
	stop  func() bool // stops watching the context of the request
}

func newConn(s *socket) *conn {
	c := &conn{socket: s}
	c.in, c.out = bufio.NewReader(c), bufio.NewWriter(c.socket)
	return c
}

var errHeader = errors.New("upstream: the header of the answer is too large")

// Read implements [io.Reader] for in. It enforces left.
func (c *conn) Read(b []byte) (int, error) {
	if c.left <= 0 {
		return 0, errHeader
	}
	n, err := c.socket.Read(b[:min(int64(len(b)), c.left)])
	c.left -= int64(n)
	return n, err
}

// quiet reports whether the TLS layer of an idle connection has no buffered data, which alive
// cannot see. It restores the deadline.
func (c *conn) quiet(deadline time.Time) bool {
	if _, secured := c.Conn.(*tls.Conn); !secured {
		return true
	}
	c.interrupt() // reads only what TLS has buffered, not the socket
	c.left = 1
	_, err := c.in.Peek(1)
	return errors.Is(err, os.ErrDeadlineExceeded) && c.SetDeadline(deadline) == nil
}

// interrupt aborts the current reads and writes.
func (c *conn) interrupt() { _ = c.SetDeadline(time.Unix(1, 0)) } // fails only on a closed connection

// why returns the reason for an error: the cause for which the context of the request ended, if that
// ended the request.
func (c *conn) why(ctx context.Context, err error) error {
	if c.cut.Load() {
		return context.Cause(ctx)
	}
	return err
}

// ask writes a request and reads the answer without its body. An upstream may answer, for example
// with 413, and close the connection before it has read the whole request. So ask reads the answer
// even if writing failed.
func (c *conn) ask(req *Request) (*http.Response, error) {
	c.begin()
	written := req.write(c.out)
	c.left = maxHeader
	asked := &http.Request{Method: req.Method} // tells whether the answer has a body
	for range maxInterim + 1 {
		res, err := http.ReadResponse(c.in, asked)
		switch {
		case err != nil && written != nil:
			return nil, fmt.Errorf("upstream: write request: %w", written)
		case err != nil:
			return nil, fmt.Errorf("upstream: read answer: %w", err)
		case res.StatusCode < http.StatusContinue:
			return nil, errStatus(res)
		case res.StatusCode == http.StatusSwitchingProtocols:
			return nil, errors.New("upstream: the answer changes the protocol")
		case res.StatusCode >= http.StatusOK:
			c.left = math.MaxInt64
			res.Close = res.Close || written != nil // the rest of the request may be lost
			return res, nil
		}
		if req.Interim != nil {
			req.Interim(res.StatusCode, res.Header)
		}
	}
	return nil, errors.New("upstream: too many interim answers")
}

// errStatus is the error of an answer with a status below 100. net/http reads such a status, but
// panics when a server sends it.
func errStatus(res *http.Response) error {
	return fmt.Errorf("upstream: read answer: malformed status %q", res.Status)
}

// body is the body of an answer. It returns its connection to the pool at the end.
type body struct {
	io.ReadCloser
	ctx  context.Context // may have ended the request
	pool *Pool
	conn *conn // nil: already returned
	keep bool
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == nil {
		return n, nil
	}
	if whole := errors.Is(err, io.EOF); whole || b.conn == nil {
		b.done(b.keep && whole)
		return n, err
	}
	err = b.conn.why(b.ctx, err)
	b.done(false)
	return n, err
}

// Close implements [io.Closer]. It closes the connection if the answer was not read to the end.
func (b *body) Close() error {
	b.done(false)
	return nil
}

func (b *body) done(keep bool) {
	if b.conn != nil {
		b.pool.done(b.conn, keep)
		b.conn = nil
	}
}
