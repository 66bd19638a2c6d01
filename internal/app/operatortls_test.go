package app

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/config"
)

// pool returns a pool of trusted certificates.
func pool(certs ...*x509.Certificate) *x509.CertPool {
	p := x509.NewCertPool()
	for _, c := range certs {
		p.AddCert(c)
	}
	return p
}

func pair(t *testing.T, files config.TLS) tls.Certificate {
	t.Helper()
	p, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
	check.OK(t, err)
	return p
}

// metricsOver fetches /metrics over a new connection and returns the status, or 0 without an
// answer.
func metricsOver(t *testing.T, address string, cfg *tls.Config) (status int, proto string, err error) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: cfg, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/metrics", http.NoBody)
	check.OK(t, err)
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, res.Proto, err
}

// The admin API uses the certificate of the server, or its own.
//
// Attack (operators): Eavesdropping on the admin address. It supports TLS and client
// certificates, and warns when it is open. Also app.TestOperatorsNeedAClientCertificate,
// app.TestOpenAdminAddressIsWarnedOf.
func TestOperatorsAreServedByTLS(t *testing.T) {
	public, own := certificateFiles(t), certificateFiles(t)
	publicCert, ownCert := writeCertificate(t, public, 1), writeCertificate(t, own, 2)
	for name, tc := range map[string]struct {
		tls, adminTLS config.TLS
		trust         *x509.Certificate
	}{
		"that of the server": {public, config.TLS{}, publicCert},
		"their own":          {public, own, ownCert},
		"only their own":     {config.TLS{}, own, ownCert},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := withOperators(t)
			cfg.TLS, cfg.AdminTLS = tc.tls, tc.adminTLS
			r := start(t, cfg, io.Discard)
			status, proto, err := metricsOver(t, r.AdminURL(), &tls.Config{RootCAs: pool(tc.trust)})
			if status != http.StatusOK || proto != "HTTP/2.0" {
				t.Errorf("status %d over %s, %v", status, proto, err)
			}
			if status, _, err := metricsOver(t, "http://"+r.AdminAddr(), nil); status == http.StatusOK {
				t.Errorf("plain HTTP: status %d, %v", status, err)
			}
			other := publicCert
			if tc.trust == publicCert {
				other = ownCert
			}
			if status, _, err := metricsOver(t, r.AdminURL(), &tls.Config{RootCAs: pool(other)}); err == nil {
				t.Errorf("it has another certificate: status %d", status)
			}
		})
	}
}

// With a client CA, a connection needs a certificate of that CA. The CA is read again when its file
// changes, and the change also applies to a client that could resume a session.
func TestOperatorsNeedAClientCertificate(t *testing.T) {
	server, first, second := certificateFiles(t), certificateFiles(t), certificateFiles(t)
	serverCert := writeCertificate(t, server, 1)
	writeCertificate(t, first, 2)
	writeCertificate(t, second, 3)
	text, err := os.ReadFile(first.CertFile)
	check.OK(t, err)
	cfg := withOperators(t)
	cfg.AdminTLS, cfg.AdminClientCA = server, certificateFiles(t).CertFile
	write(t, cfg.AdminClientCA, text)
	r := start(t, cfg, io.Discard)

	sessions := tls.NewLRUClientSessionCache(8)
	ask := func(files ...config.TLS) (int, string, error) {
		as := &tls.Config{RootCAs: pool(serverCert), ClientSessionCache: sessions}
		for _, f := range files {
			as.Certificates = append(as.Certificates, pair(t, f))
		}
		return metricsOver(t, r.AdminURL(), as)
	}
	if status, _, err := ask(); err == nil {
		t.Errorf("without a certificate: status %d", status)
	}
	if status, _, err := ask(second); err == nil {
		t.Errorf("with one of another CA: status %d", status)
	}
	status, proto, err := ask(first)
	if status != http.StatusOK || proto != "HTTP/2.0" {
		t.Errorf("with one of the CA: status %d over %s, %v", status, proto, err)
	}

	write(t, cfg.AdminClientCA, []byte("half writ"))
	if err := r.base.adminCert.reload(t.Context()); err == nil {
		t.Error("a broken CA is accepted")
	}
	if status, _, err := ask(first); status != http.StatusOK {
		t.Errorf("the last good CA: status %d, %v", status, err)
	}
	if text, err = os.ReadFile(second.CertFile); err != nil {
		t.Fatal(err)
	}
	write(t, cfg.AdminClientCA, text)
	check.OK(t, r.base.adminCert.reload(t.Context()))
	if status, _, err := ask(first); err == nil {
		t.Errorf("with one of the CA that was replaced: status %d", status)
	}
	if status, _, err := ask(second); status != http.StatusOK {
		t.Errorf("with one of the new CA: status %d, %v", status, err)
	}
}

// The admin address is never silently open: without TLS, on an address that others can reach, the
// server warns at startup.
func TestOpenAdminAddressIsWarnedOf(t *testing.T) {
	files := certificateFiles(t)
	writeCertificate(t, files, 1)
	const warning = "admin API is reachable from other machines without TLS"
	for name, tc := range map[string]struct {
		listen string
		tls    config.TLS
		want   bool
	}{
		"loopback":              {"127.0.0.1:0", config.TLS{}, false},
		"all addresses":         {"0.0.0.0:0", config.TLS{}, true},
		"all addresses, by TLS": {"0.0.0.0:0", files, false},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(t)
			cfg.AdminListen, cfg.AdminTLS = tc.listen, tc.tls
			var log strings.Builder
			r := start(t, cfg, &log)
			check.OK(t, r.stop())
			check.Equal(t, "warned", strings.Contains(log.String(), warning), tc.want)
		})
	}
}
