package app

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"oauth-server/internal/config"
)

// certificateCheck is how often the certificate files are looked at. They are
// small, and reading them notices every way of replacing them: in place, by
// rename, or through the symbolic links of a mounted Kubernetes secret.
const certificateCheck = 10 * time.Second

// certificate serves the newest good pair of certificate and key.
type certificate struct {
	cfg     config.TLS
	log     *slog.Logger
	seen    []byte // content of both files at the last look
	refused error  // why that is no pair, nil if it is one
	current atomic.Pointer[tls.Certificate]
}

func loadCertificate(cfg config.TLS, log *slog.Logger) (*certificate, error) {
	c := &certificate{cfg: cfg, log: log}
	if _, err := c.read(); err != nil {
		return nil, err
	}
	return c, nil
}

// read reads the files and, if they have changed, serves them from now on. A pair that does not fit
// is an error until the files change again (one may be replaced before the other), and the last good
// pair stays.
func (c *certificate) read() (changed bool, err error) {
	cert, err := os.ReadFile(c.cfg.CertFile)
	if err != nil {
		return false, fmt.Errorf("read certificate: %w", err)
	}
	key, err := os.ReadFile(c.cfg.KeyFile)
	if err != nil {
		return false, fmt.Errorf("read key: %w", err)
	}
	both := bytes.Join([][]byte{cert, key}, []byte{0})
	if bytes.Equal(both, c.seen) {
		return false, c.refused
	}
	c.seen, c.refused = both, nil
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		c.refused = fmt.Errorf("certificate %s with key %s: %w", c.cfg.CertFile, c.cfg.KeyFile, err)
		return false, c.refused
	}
	c.current.Store(&pair)
	return true, nil
}

// reload serves the files as they are now, and logs a change.
func (c *certificate) reload(ctx context.Context) error {
	changed, err := c.read()
	if changed {
		leaf := c.current.Load().Leaf
		c.log.LogAttrs(ctx, slog.LevelInfo, "certificate reloaded",
			slog.String("serial", leaf.SerialNumber.Text(16)), slog.Time("not_after", leaf.NotAfter))
	}
	return err
}

// config is TLS 1.2 or newer (RFC 9325) with the newest certificate.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return c.current.Load(), nil
		},
	}
}
