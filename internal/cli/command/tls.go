package command

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"

	"github.com/spf13/pflag"
)

// TLSFiles are the flags for calling a server with a certificate of a private CA, or a server that
// requires a client certificate.
type TLSFiles struct{ ca, Cert, key string }

// Add adds the flags.
func (f *TLSFiles) Add(flags *pflag.FlagSet) {
	flags.StringVar(&f.ca, "ca-file", "", "PEM file of CA certificates to trust besides the system's")
	flags.StringVar(&f.Cert, "cert-file", "", "PEM file of the client certificate for the admin address")
	flags.StringVar(&f.key, "key-file", "", "PEM file of the private key for --cert-file")
	InTopic(Connecting, flags, "ca-file", "cert-file", "key-file")
}

// Transports returns one transport with the client certificate, if there is one, and one without.
// Both trust the CA. Missing flags are read from the environment.
func (f *TLSFiles) Transports(c *Env) (presenting, plain http.RoundTripper, err error) {
	ca := cmp.Or(f.ca, c.Variable("OAUTH_CA_FILE"))
	cert, key := cmp.Or(f.Cert, c.Variable("OAUTH_CERT_FILE")), cmp.Or(f.key, c.Variable("OAUTH_KEY_FILE"))
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		if trust.RootCAs, err = rootsWith(ca); err != nil {
			return nil, nil, Usagef("--ca-file: %w", err)
		}
	}
	plain = withTLS(trust)
	if cert == "" && key == "" {
		return plain, plain, nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, nil, Usagef("--cert-file and --key-file: %w", err)
	}
	own := trust.Clone()
	own.Certificates = []tls.Certificate{pair}
	return withTLS(own), plain, nil
}

// rootsWith returns the system's CAs and the CAs in the file.
func rootsWith(file string) (*x509.CertPool, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool() // a system without CAs
	}
	text, err := os.ReadFile(file) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, err
	}
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s contains no PEM certificate", file)
	}
	return roots, nil
}

// withTLS returns the default transport with that configuration.
func withTLS(cfg *tls.Config) http.RoundTripper {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // nothing replaces it
	transport.TLSClientConfig = cfg
	transport.MaxIdleConnsPerHost = ImportAtOnce // otherwise an import would open a connection for nearly every line
	return transport
}

// ImportAtOnce is the number of lines stored concurrently. It is below the number of connections
// that one source may open to the admin address of a server with a low limit on open files.
const ImportAtOnce = 24
