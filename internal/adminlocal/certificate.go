package adminlocal

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"time"
)

// ServerName is the name (SNI) by which commands ask a server with TLS for the certificate of its key.
// No certificate for the outside has it: names below .invalid belong to no one (RFC 2606).
const ServerName = "local.oauth-server.invalid"

// private is the private key of the certificate. The server and its commands know it, as they know the key
// from which it follows.
func (a *Access) private() ed25519.PrivateKey {
	seed, _ := hex.DecodeString(a.derive("certificate")) // which derive has encoded
	return ed25519.NewKeyFromSeed(seed)
}

// Certificate is what the server serves under [ServerName]. Only its public key means anything, so neither
// the names and times of the certificate for the outside matter to commands, nor that it is replaced.
func (a *Access) Certificate() (*tls.Certificate, error) {
	private := a.private()
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{ServerName}, NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(100, 0, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, fmt.Errorf("make the certificate for commands on this machine: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, nil
}

// ErrOther is returned for a connection to another server.
var ErrOther = errors.New("what answers there does not have the key that lies beside the data file")

// Transport returns base, an [http.Transport], with connections by TLS to a server that has the key, and to
// no other. The client certificate of base stays.
func (a *Access) Transport(base http.RoundTripper) http.RoundTripper {
	t := base.(*http.Transport).Clone() //nolint:forcetypeassert // see above
	if t.TLSClientConfig == nil {
		t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	t.ForceAttemptHTTP2 = true // which a configuration of TLS disables
	public := a.private().Public()
	t.TLSClientConfig.ServerName = ServerName
	t.TLSClientConfig.InsecureSkipVerify = true // instead of names and CAs the key is compared
	t.TLSClientConfig.VerifyConnection = func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) > 0 {
			if key, ok := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey); ok && key.Equal(public) {
				return nil
			}
		}
		return ErrOther
	}
	return t
}
