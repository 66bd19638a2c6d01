package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"syscall"

	"oauth-server/internal/fielderr"
	"oauth-server/internal/strict"
)

// ReadAgain returns the content of a configuration file that may have changed. It returns an error
// if the file is larger than any real configuration, or not a regular file: a pipe is empty after
// the first read, and blocks without a writer.
func ReadAgain(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errIrregular(path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return readOpen(f, maxFileSize)
}

func errIrregular(path string) error {
	return fmt.Errorf("%s is not a regular file, and only such a file can be read again", path)
}

// checkRegular refuses files named by the configuration that cannot be read again.
func (c *Config) checkRegular() (es fielderr.Errors) {
	mongo := *cmp.Or(c.Store.MongoDB, &MongoDB{})
	for _, f := range [][2]string{
		{"store.mongodb.uri_file", mongo.URIFile},
		{"tls.cert_file", c.TLS.CertFile},
		{"tls.key_file", c.TLS.KeyFile},
		{"admin_tls.cert_file", c.AdminTLS.CertFile},
		{"admin_tls.key_file", c.AdminTLS.KeyFile},
		{"admin_client_ca", c.AdminClientCA},
		{"keys.secret_file", c.Keys.SecretFile},
		{"gateway.introspection.client_secret_file", c.Gateway.Introspection.ClientSecretFile},
	} {
		if info, err := os.Stat(f[1]); err == nil && !info.Mode().IsRegular() {
			es.Add(f[0], "%v", errIrregular(f[1]))
		}
	}
	return es
}

// SetsNothing reports whether a file has no settings: it is empty, or has only comments.
func SetsNothing(text []byte) bool {
	v, problems := strict.ParseYAML("", text)
	return v == nil && problems == nil
}
