package config

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/check"
	"oauth-server/internal/keys"
)

// Two secrets, as openssl rand -base64 32 prints them.
const (
	oneSecret     = "w2S4sO0xXQ8lN0i1kY5vFQ8m3Qb2JmZ7d9sV4cT6uRk="
	anotherSecret = "Jr7p0mYk2Jc9x8WqL5n3vB1tZ6sD4fG7hK9aE2uO0iM="
)

func secretFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	check.OK(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestSecretsOfKeys(t *testing.T) {
	one, err := keys.ParseSecret(oneSecret)
	check.OK(t, err)
	for name, environ := range map[string][]string{
		"value": {"OAUTH_KEYS_SECRET=" + oneSecret},
		"file":  {"OAUTH_KEYS_SECRET_FILE=" + secretFile(t, oneSecret+"\n")},
		"both":  {"OAUTH_KEYS_SECRET_FILE=" + secretFile(t, oneSecret+",\n"+anotherSecret+"\n")},
	} {
		cfg, err := Load(Sources{Environ: environ})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		s, err := cfg.Keys.Secrets()
		if err != nil || !s.Current.Same(one) || (s.Second != nil) != (name == "both") {
			t.Errorf("%s: Secrets() = %v, %v", name, s, err)
		}
	}
	cfg, err := Load(Sources{Environ: []string{"OAUTH_KEYS_SECRET=none," + oneSecret}})
	check.OK(t, err)
	if s, err := cfg.Keys.Secrets(); err != nil || s.Current != nil || !s.Second.Same(one) {
		t.Errorf("Secrets() = %v, %v", s, err)
	}
	cfg, err = Load(Sources{})
	check.OK(t, err)
	if s, err := cfg.Keys.Secrets(); err != nil || s != (keys.Secrets{}) {
		t.Errorf("Secrets() = %v, %v without any", s, err)
	}
}

// Attack (keys): Weak secrets for keys. Short or repeated secrets are refused and not printed.
func TestSecretsOfKeysRefused(t *testing.T) {
	short := base64.StdEncoding.EncodeToString([]byte("thirty-one bytes are not enough"))
	for name, tc := range map[string]struct{ environ, want string }{
		"short":          {"OAUTH_KEYS_SECRET=" + short, "keys.secret: must be base64 of at least 32 random bytes"},
		"short in file":  {"OAUTH_KEYS_SECRET_FILE=" + secretFile(t, short), "keys.secret_file: must be base64 of at least 32 random bytes"},
		"empty file":     {"OAUTH_KEYS_SECRET_FILE=" + secretFile(t, ""), "is empty"},
		"no such file":   {"OAUTH_KEYS_SECRET_FILE=no-such-file", "keys.secret_file: open no-such-file"},
		"huge file":      {"OAUTH_KEYS_SECRET_FILE=/dev/zero", "keys.secret_file: /dev/zero is larger than 65536 bytes"},
		"value and file": {"OAUTH_KEYS_SECRET=" + oneSecret + " OAUTH_KEYS_SECRET_FILE=x", "keys.secret: and keys.secret_file cannot be used together"},
		"twice the same": {"OAUTH_KEYS_SECRET=" + oneSecret + "," + oneSecret, "keys.secret: must be two different secrets"},
		"second":         {"OAUTH_KEYS_SECRET=none,REDACTED", "keys.secret: must be base64"},
		"three":          {"OAUTH_KEYS_SECRET=none," + oneSecret + "," + anotherSecret, "keys.secret: must be base64"},
		"none alone":     {"OAUTH_KEYS_SECRET=none", "keys.secret: must be base64 of at least 32 random bytes, such as from openssl rand -base64 32; white space around it is ignored"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(Sources{Environ: strings.Fields(tc.environ)})
			check.ErrorSays(t, err, tc.want)
			for _, secret := range []string{short, oneSecret} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the secret is in the message: %v", err)
				}
			}
			_, alone := LoadKeys(Sources{Environ: strings.Fields(tc.environ)})
			if diff := cmp.Diff(err, alone); diff != "" {
				t.Errorf("LoadKeys() says something else (-Load +LoadKeys):\n%s", diff)
			}
		})
	}
}

// LoadKeys does not need the settings that only a server needs.
func TestLoadKeysIsAboutStoreAndKeys(t *testing.T) {
	if _, err := LoadKeys(Sources{Environ: []string{"OAUTH_LISTEN=nowhere", "OAUTH_KEYS_SECRET=" + oneSecret}}); err != nil {
		t.Error(err)
	}
	if _, err := LoadKeys(Sources{Environ: []string{"OAUTH_DATA=x", "OAUTH_MONGODB_URI=mongodb://h"}}); err == nil {
		t.Error("two stores are accepted")
	}
}

// A printed configuration has no secrets and is refused: a server must not start without its secret.
func TestPrintedConfigurationIsRefused(t *testing.T) {
	cfg, err := Load(Sources{Environ: []string{"OAUTH_KEYS_SECRET=" + oneSecret + "," + anotherSecret}})
	check.OK(t, err)
	file := secretFile(t, printed(t, cfg))
	_, err = Load(Sources{File: file})
	check.ErrorSays(t, err, "keys.secret: must be base64")
	again, err := Load(Sources{File: file, Environ: []string{"OAUTH_KEYS_SECRET=" + oneSecret + "," + anotherSecret}})
	check.OK(t, err)
	check.Equal(t, "keys", again.Keys, cfg.Keys)
}
