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

	"oauth-server/internal/adminlocal"
	"oauth-server/internal/config"
)

// newHTTPServer returns a server that bounds what a slow or greedy peer can hold on to. Requests are
// small and answered in milliseconds, unless they wait: for a password to be hashed, or for their turn.
// net/http ends the context of a request that lasts longer than ReadTimeout.
func newHTTPServer(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 100,      // the least that RFC 9113 recommends
			MaxReadFrameSize:     16 << 10, // which each connection allocates when a frame begins
			// What is received and not read yet. A whole form is half of it.
			MaxReceiveBufferPerConnection: 128 << 10,
			MaxReceiveBufferPerStream:     128 << 10,
			WriteByteTimeout:              time.Minute, // for a peer that does not read
		},
		// Errors of clients below HTTP, such as bad handshakes, need no attention here.
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// idleDelay is how long a stopping server keeps idle connections open. One that is quiet for
// longer hardly carries a request in the very moment in which it is closed.
const idleDelay = 250 * time.Millisecond

// connDrainer lets the connections of a stopping server end without losing a request.
// [http.Server.Shutdown] closes idle ones at once, and a request that is on its way then fails;
// clients do not repeat it by themselves, since it is a POST. So a server that is about to stop marks
// each answer as the last of its connection, and answers on those it has for a moment longer.
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
			w.Header().Set("Connection", "close") // in HTTP/2 this becomes GOAWAY
		}
		next.ServeHTTP(w, r)
	})
}

// track is a [http.Server.ConnState].
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

// wait returns when no connection is open, or after the delay, or when ctx ends.
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

// closeUnused closes the connections on which no request has come yet. Clients and proxies open some
// ahead of need, and [http.Server.Shutdown] would wait five seconds for each.
func (d *connDrainer) closeUnused() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.unused {
		_ = c.Close() // the server notices
	}
}

// certificateCheck is how often the certificate files are read. They are small, and reading them
// notices every way of replacing them: in place, by rename, or through the symbolic links of a
// mounted Kubernetes secret.
const certificateCheck = 10 * time.Second

// certificate serves the newest good pair of certificate and key, and asks for client certificates of
// the newest good CA.
type certificate struct {
	cfg      config.TLS
	clientCA string // file; empty: no client certificate is asked for
	// local is served to the commands on this machine; nil: as to all others. It is set before config.
	local   *tls.Certificate
	log     *slog.Logger
	seen    []byte // content of all files when last read
	refused error  // why they are not served, nil if they are
	current atomic.Pointer[identity]
}

// identity is what the files held.
type identity struct {
	pair    tls.Certificate
	clients *x509.CertPool // nil: no client certificate is asked for
}

func loadCertificate(cfg config.TLS, clientCA string, log *slog.Logger) (*certificate, error) {
	c := &certificate{cfg: cfg, clientCA: clientCA, log: log}
	if _, err := c.read(); err != nil {
		return nil, err
	}
	return c, nil
}

// read reads the files and, if they have changed, serves them from now on. Files that do not fit are
// an error until they change again (one may be replaced before the others), and the last good ones
// stay.
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

var errNoPEM = errors.New("it holds no PEM certificate")

// reload serves the files as they are now, and logs a change.
func (c *certificate) reload(ctx context.Context) error {
	changed, err := c.read()
	if changed {
		leaf := c.current.Load().pair.Leaf
		c.log.LogAttrs(ctx, slog.LevelInfo, "certificate reloaded",
			slog.String("serial", leaf.SerialNumber.Text(16)), slog.Time("not_after", leaf.NotAfter))
	}
	return err
}

// config returns TLS 1.2 or newer (RFC 9325) with the newest certificate and the newest client CA. A
// client certificate is verified in every handshake: no session is resumed, so a CA that was taken out
// of its file is not accepted again.
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
	required.NextProtos = []string{"h2", "http/1.1"} // http.Server sets them in base only
	base.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := required.Clone()
		now.ClientCAs = c.current.Load().clients
		return now, nil
	}
	return base
}
