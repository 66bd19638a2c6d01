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

// ServerName is the name (SNI) that commands use to get the certificate of the server's key. No
// public certificate can have this name, because names below .invalid are reserved (RFC 2606).
const ServerName = "local.oauth-server.invalid"

// private returns the private key of the certificate. It is derived from the shared key, and known
// to the server and its commands like that key.
func (a *Access) private() ed25519.PrivateKey {
	seed, _ := hex.DecodeString(a.derive("certificate")) // valid hex, encoded by derive
	return ed25519.NewKeyFromSeed(seed)
}

// Certificate returns the certificate that the server uses for [ServerName]. Commands check only
// its public key. The names, validity and renewal of the public certificate do not affect them.
func (a *Access) Certificate() (*tls.Certificate, error) {
	private := a.private()
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{ServerName}, NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(100, 0, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, fmt.Errorf("make the certificate for local commands: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, nil
}

// ErrOther is returned for a connection to a different server.
var ErrOther = errors.New("the server at this address does not have the key beside the data file")

// Transport returns a copy of base, an [http.Transport], that opens TLS connections only to the
// server that has the key. It keeps the client certificate of base.
func (a *Access) Transport(base http.RoundTripper) http.RoundTripper {
	t := base.(*http.Transport).Clone() //nolint:forcetypeassert // see above
	if t.TLSClientConfig == nil {
		t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	t.ForceAttemptHTTP2 = true // setting a TLS configuration disables it
	public := a.private().Public()
	t.TLSClientConfig.ServerName = ServerName
	t.TLSClientConfig.InsecureSkipVerify = true // the key is compared, not names and CAs
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
