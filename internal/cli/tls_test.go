package cli

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

// selfSigned writes a certificate for these hosts, or 127.0.0.1, that is its own CA, and its key.
func selfSigned(t *testing.T, hosts ...string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check.OK(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: hosts, IsCA: true, BasicConstraintsValid: true,
	}
	if len(hosts) == 0 {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	check.OK(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	check.OK(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		check.OK(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	}
	return cert, key
}

// The limits commands reach an admin address that has HTTPS and asks for a client certificate, and get their token
// there, or from an issuer that is given, without that certificate.
func TestLimitsOverTLSWithAClientCertificate(t *testing.T) {
	cert, key := selfSigned(t)
	ownCert, ownKey := selfSigned(t)
	strangerCert, strangerKey := selfSigned(t)
	data := storeFile(t)
	var ops credentials
	runJSON(t, &ops, "", "client", "create", "ops", "--admin", "--data", data)
	server := serving(t, "serve", "--data", data, "--tls-cert-file", cert, "--tls-key-file", key, "--admin-client-ca", ownCert)
	address := "https://" + strings.TrimPrefix(server.operators, "http://")
	limits := func(environ []string, args ...string) (string, int) {
		var out, errs bytes.Buffer
		c := &command.Env{In: strings.NewReader(""), Out: &out, ErrOut: &errs, Environ: append(environ, "OAUTH_CLIENT_SECRET="+ops.ClientSecret)}
		args = append([]string{"limits", "list", "--all", "--server", address, "--client-id", "ops", "--no-cache"}, args...)
		status := execute(t.Context(), c, args)
		return out.String() + errs.String(), status
	}
	own := []string{"--ca-file", cert, "--cert-file", ownCert, "--key-file", ownKey}
	if text, status := limits(nil, own...); status != command.ExitOK || !strings.Contains(text, "ops") {
		t.Errorf("status %d: %s", status, text)
	}
	if text, status := limits([]string{"OAUTH_CA_FILE=" + cert, "OAUTH_CERT_FILE=" + ownCert, "OAUTH_KEY_FILE=" + ownKey}); status != command.ExitOK {
		t.Errorf("by the environment: status %d: %s", status, text)
	}
	issuer := "https://" + strings.TrimPrefix(server.clients, "http://")
	for _, given := range []string{issuer, address} {
		if text, status := limits(nil, append(own, "--issuer", given)...); status != command.ExitOK {
			t.Errorf("with the issuer %s: status %d: %s", given, status, text)
		}
	}
	// In TLS 1.3 the client has finished when the server refuses its certificate, so the message varies.
	for name, tc := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"CA not trusted":       {own[2:], command.ExitFailed, "certificate"},
		"no certificate":       {own[:2], command.ExitFailed, ""},
		"one of another CA":    {[]string{"--ca-file", cert, "--cert-file", strangerCert, "--key-file", strangerKey}, command.ExitFailed, ""},
		"no such CA":           {[]string{"--ca-file", "no-such"}, command.ExitUsage, "--ca-file: open no-such"},
		"no certificate in it": {[]string{"--ca-file", key}, command.ExitUsage, "contains no PEM certificate"},
		"key missing":          {own[:4], command.ExitUsage, "--cert-file and --key-file"},
	} {
		if text, status := limits(nil, tc.args...); status != tc.status || !strings.Contains(text, tc.want) {
			t.Errorf("%s: status %d: %s", name, status, text)
		}
	}
	runOK(t, "", append([]string{"health", "--url", address + "/readyz"}, own...)...)
}
