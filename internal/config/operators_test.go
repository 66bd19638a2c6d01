package config

import (
	"testing"

	"oauth-server/internal/check"
)

func TestOperatorTLS(t *testing.T) {
	for name, tc := range map[string]struct{ file, want string }{
		"key missing":     {"admin_tls: { cert_file: x }", "admin_tls.key_file: is required with admin_tls.cert_file"},
		"cert missing":    {"admin_tls: { key_file: x }", "admin_tls.cert_file: is required with admin_tls.key_file"},
		"no such files":   {"admin_tls: { cert_file: no-such, key_file: no-such }", "admin_tls.key_file: open no-such"},
		"CA without TLS":  {"admin_client_ca: no-such", "admin_client_ca: needs a server certificate: set admin_tls or tls"},
		"no such CA":      {"admin_client_ca: no-such", "admin_client_ca: open no-such"},
		"CA is not a PEM": {"admin_client_ca: " + secretFile(t, "x"), "contains no PEM certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(Sources{File: secretFile(t, tc.file)})
			check.ErrorSays(t, err, tc.want)
		})
	}
	public, own := TLS{CertFile: "public"}, TLS{CertFile: "own"}
	for want, c := range map[TLS]Config{{}: {}, public: {TLS: public}, own: {TLS: public, AdminTLS: own}} {
		check.Equal(t, "OperatorTLS()", c.OperatorTLS(), want)
	}
}
