package app

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"oauth-server/internal/admin/adminlocal"
	"oauth-server/internal/config"
)

// newHTTPServer returns a server with limits for slow or greedy peers. Requests are small and
// answered in milliseconds, unless they wait for a password hash or in a queue. ReadTimeout bounds the
// time until a request has arrived with its body.
func newHTTPServer(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 100,      // the minimum that RFC 9113 recommends
			MaxReadFrameSize:     16 << 10, // allocated by each connection when a frame begins
			// Received data that is not read yet. A whole form is half of it.
			MaxReceiveBufferPerConnection: 128 << 10,
			MaxReceiveBufferPerStream:     128 << 10,
			WriteByteTimeout:              time.Minute, // for a peer that does not read
		},
		// Client errors below HTTP, such as bad handshakes, need no attention.
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// idleDelay is how long a stopping server keeps idle connections open. A connection that has been
// idle for longer rarely carries a request at the very moment it is closed.
const idleDelay = 250 * time.Millisecond

// connDrainer closes the connections of a stopping server without losing a request.
// [http.Server.Shutdown] closes idle connections at once, so a request in transit fails, and
// clients do not retry it by themselves because it is a POST. So a stopping server first marks each
// answer as the last on its connection, and keeps its connections open for a moment longer.
type connDrainer struct {
	draining atomic.Bool
	open     atomic.Int64 // connections
	delay    time.Duration

	mu     sync.Mutex
	unused map[net.Conn]struct{} // connections without a request so far
}

// around marks the answers of a stopping server.
func (d *connDrainer) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.draining.Load() {
			w.Header().Set("Connection", "close") // sends GOAWAY with HTTP/2
		}
		next.ServeHTTP(w, r)
	})
}

// track is an [http.Server].ConnState.
func (d *connDrainer) track(c net.Conn, state http.ConnState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.unused, c)
	switch state {
	case http.StateNew:
		d.open.Add(1)
		if d.unused == nil {
			d.unused = map[net.Conn]struct{}{}
		}
		d.unused[c] = struct{}{}
	case http.StateClosed, http.StateHijacked:
		d.open.Add(-1)
	case http.StateActive, http.StateIdle:
	}
}

// wait returns when all connections are closed, after the delay, or when ctx ends.
func (d *connDrainer) wait(ctx context.Context) {
	over := time.After(d.delay)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for d.open.Load() > 0 {
		select {
		case <-look.C:
		case <-over:
			return
		case <-ctx.Done():
			return
		}
	}
}

// closeUnused closes the connections that have not received a request. Clients and proxies open
// some in advance, and [http.Server.Shutdown] would wait five seconds for each.
func (d *connDrainer) closeUnused() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.unused {
		_ = c.Close() // the server notices
	}
}

// certificateCheck is the interval between reads of the certificate files. They are small, and
// reading them detects every way of replacing them: in place, by rename, or through the symbolic
// links of a mounted Kubernetes secret.
const certificateCheck = 10 * time.Second

// certificate serves the newest valid pair of certificate and key, and requests client certificates
// of the newest valid CA.
type certificate struct {
	cfg      config.TLS
	clientCA string // file; empty: no client certificates
	// local is served to commands on this machine. Nil: they get the same certificate as others. It
	// is set before config is called.
	local   *tls.Certificate
	log     *slog.Logger
	seen    []byte // contents of all files at the last read
	refused error  // why they are not served, or nil
	current atomic.Pointer[identity]
}

// identity holds the parsed contents of the files.
type identity struct {
	pair    tls.Certificate
	clients *x509.CertPool // nil: no client certificates
}

func loadCertificate(cfg config.TLS, clientCA string, log *slog.Logger) (*certificate, error) {
	c := &certificate{cfg: cfg, clientCA: clientCA, log: log}
	if _, err := c.read(); err != nil {
		return nil, err
	}
	return c, nil
}

// read reads the files and serves them if they have changed. Files that do not match are an error
// until they change again, because one file may be replaced before the others. The last valid ones
// stay in use.
func (c *certificate) read() (changed bool, err error) {
	cert, err := os.ReadFile(c.cfg.CertFile)
	if err != nil {
		return false, fmt.Errorf("read certificate: %w", err)
	}
	key, err := os.ReadFile(c.cfg.KeyFile)
	if err != nil {
		return false, fmt.Errorf("read key: %w", err)
	}
	var authority []byte
	if c.clientCA != "" {
		if authority, err = os.ReadFile(c.clientCA); err != nil {
			return false, fmt.Errorf("read client CA: %w", err)
		}
	}
	all := bytes.Join([][]byte{cert, key, authority}, []byte{0})
	if bytes.Equal(all, c.seen) {
		return false, c.refused
	}
	c.seen = all
	next, err := c.parse(cert, key, authority)
	if c.refused = err; err != nil {
		return false, err
	}
	c.current.Store(next)
	return true, nil
}

func (c *certificate) parse(cert, key, authority []byte) (*identity, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("load certificate %s with key %s: %w", c.cfg.CertFile, c.cfg.KeyFile, err)
	}
	if c.clientCA == "" {
		return &identity{pair: pair}, nil
	}
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("load client CA %s: %w", c.clientCA, errNoPEM)
	}
	return &identity{pair, clients}, nil
}

var errNoPEM = errors.New("it contains no PEM certificate")

// reload reads the files again and logs a change.
func (c *certificate) reload(ctx context.Context) error {
	changed, err := c.read()
	if changed {
		leaf := c.current.Load().pair.Leaf
		c.log.LogAttrs(ctx, slog.LevelInfo, "certificate reloaded",
			slog.String("serial", leaf.SerialNumber.Text(16)), slog.Time("not_after", leaf.NotAfter))
	}
	return err
}

// config returns a configuration with TLS 1.2 or newer (RFC 9325), the newest certificate and the
// newest client CA. Every handshake verifies the client certificate. Sessions are not resumed, so a
// CA that was removed from its file is no longer accepted.
func (c *certificate) config() *tls.Config {
	base := &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if c.local != nil && hello.ServerName == adminlocal.ServerName {
				return c.local, nil
			}
			return &c.current.Load().pair, nil
		},
	}
	if c.clientCA == "" {
		return base
	}
	required := base.Clone()
	required.ClientAuth, required.SessionTicketsDisabled = tls.RequireAndVerifyClientCert, true
	required.NextProtos = []string{"h2", "http/1.1"} // http.Server sets them only in base
	base.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := required.Clone()
		now.ClientCAs = c.current.Load().clients
		return now, nil
	}
	return base
}
