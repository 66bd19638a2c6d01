package upstream

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Options configure a [Pool].
type Options struct {
	// AnswerWithin bounds the time for an answer with its body. 0: 30 seconds.
	AnswerWithin time.Duration
	// IdleFor is how long an idle connection is kept. 0: 90 seconds.
	IdleFor time.Duration
	// TLS is the configuration for an https upstream. Nil: the defaults of the system.
	TLS *tls.Config
}

const (
	defaultAnswerWithin = 30 * time.Second
	defaultIdleFor      = 90 * time.Second
	dialWithin          = 10 * time.Second
	maxIdle             = 1024 // maximum number of idle connections
)

// Pool holds the connections to one upstream. It is safe for concurrent use.
type Pool struct {
	address string      // host:port
	tls     *tls.Config // nil: plain text
	within  time.Duration
	idleFor time.Duration
	dialer  func(ctx context.Context, network, address string) (net.Conn, error)

	mu   sync.Mutex
	idle []*conn     // the most recently used last
	reap *time.Timer // closes connections that were idle for too long; nil: none are idle
}

// New returns a pool of connections to the host of an http or https URL.
func New(u *url.URL, o Options) *Pool {
	p := &Pool{within: cmp.Or(o.AnswerWithin, defaultAnswerWithin), idleFor: cmp.Or(o.IdleFor, defaultIdleFor), dialer: new(net.Dialer).DialContext}
	port := "80"
	if u.Scheme == "https" {
		port = "443"
		p.tls = &tls.Config{MinVersion: tls.VersionTLS12}
		if o.TLS != nil {
			p.tls = o.TLS.Clone()
		}
		p.tls.NextProtos = []string{"http/1.1"}
		p.tls.ServerName = cmp.Or(p.tls.ServerName, u.Hostname())
		if p.tls.ClientSessionCache == nil {
			p.tls.ClientSessionCache = tls.NewLRUClientSessionCache(0)
		}
	}
	p.address = net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port))
	return p
}

// RoundTrip implements [http.RoundTripper]. It sends the request to the pool's upstream and ignores
// the host of its URL. It reads the body before it sends anything.
func (p *Pool) RoundTrip(req *http.Request) (*http.Response, error) {
	r := &Request{Method: req.Method, Target: req.URL.RequestURI(), Host: cmp.Or(req.Host, req.URL.Host), Header: req.Header}
	if req.Body != nil {
		var err error
		r.Body, err = io.ReadAll(req.Body)
		if err = errors.Join(err, req.Body.Close()); err != nil {
			return nil, err
		}
	}
	return p.Send(req.Context(), r)
}

// Send sends a request and returns the answer. When the context ends before the answer is read, it
// ends the request, but see [Request.Outlives].
func (p *Pool) Send(ctx context.Context, req *Request) (*http.Response, error) {
	if req.malformed() {
		return nil, errTarget
	}
	for {
		c, err := p.take(ctx)
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			if !p.put(c) {
				_ = c.Close()
			}
			return nil, context.Cause(ctx)
		}
		res, err := p.exchange(ctx, c, req)
		if err == nil || !c.used || !c.untouched() || c.cut.Load() {
			return res, err
		}
	}
}

// exchange sends a request over a connection. It closes the connection if that fails.
func (p *Pool) exchange(ctx context.Context, c *conn, req *Request) (*http.Response, error) {
	c.gone.Store(false)
	c.stop = context.AfterFunc(ctx, func() {
		if req.Outlives != nil && req.Outlives(context.Cause(ctx)) {
			c.gone.Store(true)
			return
		}
		c.cut.Store(true)
		c.interrupt()
	})
	res, err := c.ask(req)
	if err != nil {
		c.stop()
		_ = c.Close()
		return nil, c.why(ctx, err)
	}
	if res.Body == http.NoBody {
		p.done(c, !res.Close)
	} else {
		res.Body = &body{ReadCloser: res.Body, ctx: ctx, pool: p, conn: c, keep: !res.Close}
	}
	return res, nil
}

// take returns an idle or new connection with its deadline set.
func (p *Pool) take(ctx context.Context) (*conn, error) {
	for deadline := time.Now().Add(p.within); ; {
		p.mu.Lock()
		last := len(p.idle) - 1
		if last < 0 {
			p.mu.Unlock()
			return p.dial(ctx, deadline)
		}
		c := p.idle[last]
		p.idle[last], p.idle = nil, p.idle[:last]
		p.mu.Unlock()
		if err := c.SetDeadline(deadline); err == nil && c.alive() && c.quiet(deadline) {
			return c, nil
		}
		_ = c.Close()
	}
}

func (p *Pool) dial(ctx context.Context, answered time.Time) (*conn, error) {
	deadline := answered
	if soon := time.Now().Add(dialWithin); soon.Before(deadline) {
		deadline = soon
	}
	dialing, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	plain, err := p.dialer(dialing, "tcp", p.address)
	if err != nil {
		return nil, err
	}
	s := newSocket(plain)
	if p.tls != nil {
		if err := s.secure(dialing, p.tls); err != nil {
			return nil, err
		}
	}
	c := newConn(s)
	return c, c.SetDeadline(answered)
}

// done is called when the answer on a connection has been read or abandoned.
func (p *Pool) done(c *conn, keep bool) {
	if uninterrupted := c.stop() || c.gone.Load(); !uninterrupted || !keep || c.in.Buffered() > 0 || !p.put(c) {
		_ = c.Close()
	}
}

// put returns a connection to the pool. It reports false if the pool is full.
func (p *Pool) put(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) >= maxIdle {
		return false
	}
	c.since, c.used = time.Now(), true
	p.idle = append(p.idle, c)
	if p.reap == nil {
		p.reap = time.AfterFunc(p.idleFor, p.closeIdle)
	}
	return true
}

// closeIdle closes the connections that have been idle for too long.
func (p *Pool) closeIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for n < len(p.idle) && time.Since(p.idle[n].since) >= p.idleFor {
		n++
	}
	p.close(n)
	if p.reap = nil; len(p.idle) > 0 {
		p.reap = time.AfterFunc(p.idleFor-time.Since(p.idle[0].since), p.closeIdle)
	}
}

// CloseIdleConnections closes all idle connections.
func (p *Pool) CloseIdleConnections() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.close(len(p.idle))
	if p.reap != nil {
		p.reap.Stop()
		p.reap = nil
	}
}

// close closes the n connections that have been idle longest. The caller holds the lock.
func (p *Pool) close(n int) {
	for _, c := range p.idle[:n] {
		_ = c.Close() // an idle connection has no data to lose
	}
	rest := copy(p.idle, p.idle[n:])
	clear(p.idle[rest:])
	p.idle = p.idle[:rest]
}
