package cli

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"syscall"

	"github.com/spf13/cobra"
)

// withHint appends a known remedy to an error.
func withHint(cmd *cobra.Command, err error) error {
	var call *url.Error // not of a database
	if !errors.As(err, &call) {
		return err
	}
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &unknown) {
		how := "in SSL_CERT_FILE"
		if cmd.Flags().Lookup("ca-file") != nil {
			how = "with --ca-file"
		}
		return fmt.Errorf("%w\nif you trust the CA of that certificate, name its file %s", err, how)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	at := "there"
	var op *net.OpError
	if errors.As(err, &op) && op.Addr != nil {
		at = "on " + op.Addr.String()
	}
	for _, other := range []struct{ flag, how string }{
		{"url", "give its address with --url"},
		{"server", "give its admin address with --server or OAUTH_SERVER, and its issuer with --issuer"},
		{"issuer", "give its address with --issuer or OAUTH_ISSUER"},
	} {
		if cmd.Flags().Lookup(other.flag) != nil {
			return fmt.Errorf("%w\nno server listens %s: start one with oauth-server serve, or %s", err, at, other.how)
		}
	}
	return err
}
