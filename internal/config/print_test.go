package config

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/check"
	"oauth-server/internal/strict"
)

func TestPrintedConfigurationReadsBack(t *testing.T) {
	for _, file := range []string{"", "testdata/complete.yaml"} {
		t.Run("from "+file, func(t *testing.T) {
			cfg, err := Load(Sources{File: file})
			check.OK(t, err)
			if m := cfg.Store.MongoDB; m != nil {
				m.URI = RedactURI(m.URI)
			}
			var out strings.Builder
			check.OK(t, cfg.WriteYAML(&out))
			printed := filepath.Join(t.TempDir(), "printed.yaml")
			check.OK(t, os.WriteFile(printed, []byte(out.String()), 0o600))
			again, err := Load(Sources{File: printed})
			if err != nil {
				t.Fatalf("%v in\n%s", err, out.String())
			}
			if diff := cmp.Diff(cfg, again, cmp.Comparer(func(a, b Prefix) bool { return a == b })); diff != "" {
				t.Errorf("read back (-printed +read):\n%s", diff)
			}
		})
	}
}

// TestPrintedConfigurationHidesSecrets: a secret is replaced, with the variable to give it in, and
// stays in the configuration itself.
func TestPrintedConfigurationHidesSecrets(t *testing.T) {
	for name, tt := range map[string]struct {
		sources Sources
		secret  string
		shown   string // in YAML
	}{
		"password of MongoDB": {Sources{File: "testdata/complete.yaml"}, "s3cret", "mongodb://oauth:REDACTED@db1,db2/?replicaSet=rs0"},
		"introspection": {
			Sources{Environ: strings.Fields(upstreamEnv +
				"OAUTH_INTROSPECTION_URL=https://idp.example/introspect OAUTH_INTROSPECTION_CLIENT_ID=gateway OAUTH_INTROSPECTION_CLIENT_SECRET=s3cret")},
			"s3cret", "set OAUTH_INTROSPECTION_CLIENT_SECRET",
		},
		"keys": {Sources{Environ: []string{"OAUTH_KEYS_SECRET=" + oneSecret + "," + anotherSecret}}, anotherSecret, "set OAUTH_KEYS_SECRET"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := Load(tt.sources)
			check.OK(t, err)
			before := *cfg
			for _, write := range []func(io.Writer) error{cfg.WriteYAML, cfg.WriteJSON} {
				var out strings.Builder
				check.OK(t, write(&out))
				if strings.Contains(out.String(), tt.secret) || strings.Count(out.String(), Redacted) != 1 {
					t.Error(out.String())
				}
			}
			if text := printed(t, cfg); !strings.Contains(text, tt.shown) {
				t.Errorf("no %q in\n%s", tt.shown, text)
			}
			if diff := cmp.Diff(&before, cfg, cmp.Comparer(func(a, b Prefix) bool { return a == b })); diff != "" {
				t.Errorf("printing changed the configuration:\n%s", diff)
			}
		})
	}
}

func TestRedactURI(t *testing.T) {
	tests := map[string]string{
		"mongodb://localhost:27017/x?w=majority":                                                      "mongodb://localhost:27017/x?w=majority",
		"mongodb://me@localhost":                                                                      "mongodb://me@localhost",
		"mongodb://me:pw@h":                                                                           "mongodb://me:REDACTED@h",
		"mongodb+srv://me:pw@h/db":                                                                    "mongodb+srv://me:REDACTED@h/db",
		"mongodb://me:p/w:@x@h:1/db":                                                                  "mongodb://me:REDACTED@h:1/db",
		"mongodb://me:p?w@h":                                                                          "mongodb://me:REDACTED@h",
		"mongodb://h/?tlsCertificateKeyFilePassword=pw&w=1":                                           "mongodb://h/?tlsCertificateKeyFilePassword=REDACTED&w=1",
		"mongodb://h/?sslClientCertificateKeyPassword=pw;w=1":                                         "mongodb://h/?sslClientCertificateKeyPassword=REDACTED;w=1",
		"mongodb://h/?TLSCERTIFICATEKEYFILEPASSWORD=pw":                                               "mongodb://h/?TLSCERTIFICATEKEYFILEPASSWORD=REDACTED",
		"mongodb://h/?w=1&tlsCertificateKeyFile%50ass%77ord=p%26w":                                    "mongodb://h/?w=1&tlsCertificateKeyFile%50ass%77ord=REDACTED",
		"mongodb://h/?tlsCertificateKeyFile=/k.pem&appName=a":                                         "mongodb://h/?tlsCertificateKeyFile=/k.pem&appName=a",
		"mongodb://h/?proxyPassword=pw":                                                               "mongodb://h/?proxyPassword=REDACTED",
		"mongodb://h?authMechanismProperties=AWS_SESSION_TOKEN:pw&w=1":                                "mongodb://h?authMechanismProperties=REDACTED&w=1",
		"mongodb://h?authMechanismPropertie%73=aws_session_token%3Ap":                                 "mongodb://h?authMechanismPropertie%73=REDACTED",
		"https://collector.example:4318/v1/traces":                                                    "https://collector.example:4318/v1/traces",
		"https://me:pw@collector.example/":                                                            "https://REDACTED@collector.example/",
		"HTTPS://token@collector.example/":                                                            "HTTPS://REDACTED@collector.example/",
		"https://collector.example/?api_key=pw&dc=eu&sig=x":                                           "https://collector.example/?api_key=REDACTED&dc=eu&sig=REDACTED",
		"https://collector.example/?pwd=a&pass=b&code=c&sas=d&jwt=e&bearer=f&license-key=g&session=h": "https://collector.example/?pwd=REDACTED&pass=REDACTED&code=REDACTED&sas=REDACTED&jwt=REDACTED&bearer=REDACTED&license-key=REDACTED&session=REDACTED",
		"nonsense": "nonsense",
	}
	for in, want := range tests {
		check.Equal(t, in, RedactURI(in), want)
	}
}

// Credentials in URLs are neither printed nor part of an error.
func TestPrintedURLsHaveNoCredentials(t *testing.T) {
	cfg := Default()
	for _, u := range []*string{&cfg.Issuer, &cfg.Tracing.Endpoint, &cfg.Gateway.Upstream, &cfg.Gateway.PublicURL, &cfg.Gateway.Introspection.URL} {
		*u = "https://me:hunter2@h.example/?access_token=hunter2"
	}
	for _, write := range []func(io.Writer) error{cfg.WriteYAML, cfg.WriteJSON} {
		var out strings.Builder
		check.OK(t, write(&out))
		if strings.Contains(out.String(), "hunter2") || strings.Count(out.String(), "https://REDACTED@h.example/?access_token=REDACTED") != 5 {
			t.Error(out.String())
		}
	}
	for _, environ := range []string{"OAUTH_TRACING_ENDPOINT=ftp://me:hunter2@h", "OAUTH_GATEWAY_UPSTREAM=htt://me:hunter2@h", "OAUTH_ISSUER=htt://me:hunter2@h", "OAUTH_ISSUER=https://me:hunter2/x@h", "OAUTH_ISSUER=https://me:%zzhunter2@h"} {
		if _, err := Load(Sources{Environ: []string{environ}}); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", environ, err)
		}
	}
}

// In YAML, a secret of digits is not a text.
func TestErrorsHaveNoSecretOfDigits(t *testing.T) {
	for _, file := range []string{"keys: { secret: 12345678 }", "keys: { secret: 12345678.5 }", "gateway: { introspection: { client_secret: 12345678 } }"} {
		path := filepath.Join(t.TempDir(), "c.yaml")
		check.OK(t, os.WriteFile(path, []byte(file), 0o600))
		_, err := Load(Sources{File: path})
		if err == nil || strings.Contains(err.Error(), "12345678") || !strings.Contains(err.Error(), "must be text, not a number; write it in quotes") {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestDurationText(t *testing.T) {
	for _, s := range []string{"0s", "500ms", "1m", "1h", "90m", "1h30m", "720h", "1m30s", "10m", "-1m", "1h0m5s", "20h"} {
		var c, again Config
		check.OK(t, strict.Set(&c, "shutdown_timeout", []string{s}))
		written := c.ShutdownTimeout.String()
		if err := strict.Set(&again, "shutdown_timeout", []string{written}); err != nil || again.ShutdownTimeout != c.ShutdownTimeout {
			t.Errorf("%s is written %s and read back as %s, %v", s, written, again.ShutdownTimeout, err)
		}
	}
	check.Equal(t, "a minute", Duration(60e9).String(), "1m")
}
