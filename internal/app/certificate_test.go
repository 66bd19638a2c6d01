package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/background"
	"oauth-server/internal/check"
	"oauth-server/internal/config"
)

// writeCertificate writes a self-signed pair for 127.0.0.1 with that serial.
func writeCertificate(t *testing.T, files config.TLS, serial int64) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check.OK(t, err)
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	check.OK(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	check.OK(t, err)
	write(t, files.CertFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	write(t, files.KeyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
	cert, err := x509.ParseCertificate(der)
	check.OK(t, err)
	return cert
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	check.OK(t, os.WriteFile(path, text, 0o600))
}

func certificateFiles(t *testing.T) config.TLS {
	t.Helper()
	dir := t.TempDir()
	return config.TLS{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
}

func TestCertificateIsReloadedWhenItsFilesChange(t *testing.T) {
	files := certificateFiles(t)
	synctest.Test(t, func(t *testing.T) {
		writeCertificate(t, files, 1)
		var log strings.Builder
		logger := slog.New(slog.NewTextHandler(&log, nil))
		c, err := loadCertificate(files, "", logger)
		check.OK(t, err)
		loops := background.NewGroup(t.Context(), logger, nil)
		serial := func() int64 {
			pair, err := c.config().GetCertificate(nil)
			check.OK(t, err)
			return pair.Leaf.SerialNumber.Int64()
		}
		loops.Repeat(background.Task{Name: "certificate", Every: certificateCheck, Do: c.reload, Failed: "reload failed"})
		writeCertificate(t, files, 2)
		check.Equal(t, "serial before the next look", serial(), 1)
		pass(certificateCheck)
		check.Equal(t, "serial after the files changed", serial(), 2)
		write(t, files.KeyFile, []byte("half writ"))
		pass(10 * certificateCheck)
		check.Equal(t, "serial with a broken key", serial(), 2)
		writeCertificate(t, files, 3)
		pass(certificateCheck)
		check.Equal(t, "serial after the files were mended", serial(), 3)
		loops.Cancel()
		loops.Wait()
		for text, want := range map[string]int{"certificate reloaded": 2, "reload failed": 1, "background task recovered": 1} {
			check.Equal(t, text, strings.Count(log.String(), text), want)
		}
	})
}

func TestFilesThatStopTheStart(t *testing.T) {
	files, other := certificateFiles(t), certificateFiles(t)
	writeCertificate(t, files, 1)
	writeCertificate(t, other, 2)
	for name, tt := range map[string]struct {
		tls config.TLS
		ca  string
	}{
		"a key of another certificate": {config.TLS{CertFile: files.CertFile, KeyFile: other.KeyFile}, ""},
		"no client CA":                 {files, "no-such-file"},
		"a client CA that is a key":    {files, files.KeyFile},
	} {
		_, err := loadCertificate(tt.tls, tt.ca, slog.New(slog.DiscardHandler))
		check.Equal(t, name+" is refused", err != nil, true)
	}
}
