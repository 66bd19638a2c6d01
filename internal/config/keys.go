package config

import (
	"strings"

	"oauth-server/internal/keys"
	"oauth-server/internal/strict/fielderr"
)

// Keys has the secrets that encrypt the signing keys in the store, by value or in a file, not both.
type Keys struct {
	// Secret encrypts and decrypts. Without it, new keys are stored in clear. While it is being
	// changed, a second one after a comma only decrypts: the old or the next secret. The first may
	// then be "none".
	Secret     string `json:"secret,omitempty" help:"secret that encrypts the signing keys in the store: base64 of at least 32 random bytes; a second one, after a comma, only decrypts" redact:"all"`
	SecretFile string `json:"secret_file,omitempty" help:"file with the secret"`
}

// Secrets reads the file and returns the secrets. The error is [fielderr.Errors].
func (k Keys) Secrets() (keys.Secrets, error) {
	var es fielderr.Errors
	s := k.read(&es)
	return s, es.Err()
}

func (k Keys) check(es *fielderr.Errors) { k.read(es) }

func (k Keys) read(es *fielderr.Errors) (s keys.Secrets) {
	path := "keys.secret"
	text := valueOrFile(es, path, k.Secret, k.SecretFile)
	if k.SecretFile != "" {
		path += "_file"
	}
	first, second, two := strings.Cut(text, ",")
	if two {
		s.Second = parseSecret(es, path, second)
	}
	if text != "" && (!two || strings.TrimSpace(first) != none) {
		s.Current = parseSecret(es, path, first)
	}
	if s.Current.Same(s.Second) {
		es.Add(path, "must be two different secrets")
	}
	return s
}

func parseSecret(es *fielderr.Errors, path, text string) *keys.Secret {
	secret, err := keys.ParseSecret(text)
	if err != nil {
		es.Add(path, "%s", err)
	}
	return secret
}

// maxSecretFile is far above any secret, in bytes.
const maxSecretFile = 64 << 10

// valueOrFile returns the value of the field at path, or the content of the file that the field
// path_file names, without line breaks at its end.
func valueOrFile(es *fielderr.Errors, path, value, file string) string {
	switch {
	case file == "":
		return value
	case value != "":
		es.Add(path, "and %s_file cannot be used together", path)
		return ""
	}
	text, err := readBounded(file, maxSecretFile)
	value = strings.TrimRight(string(text), "\r\n")
	if err != nil {
		es.Add(path+"_file", "%v", err)
	} else if strings.TrimSpace(value) == "" {
		es.Add(path+"_file", "%s is empty", file)
	}
	return value
}
