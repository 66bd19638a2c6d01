package config

import (
	"oauth-server/internal/fielderr"
	"oauth-server/internal/keys"
)

// Keys has the secrets that encrypt the signing keys in the store. Each secret is given by its
// value or in a file, not both.
type Keys struct {
	// Secret encrypts and decrypts. Without it, new keys are stored in clear.
	Secret     string `json:"secret,omitempty"`
	SecretFile string `json:"secret_file,omitempty"`
	// SecondSecret only decrypts: it is the old or the next secret while Secret is being changed.
	SecondSecret     string `json:"second_secret,omitempty"`
	SecondSecretFile string `json:"second_secret_file,omitempty"`
}

// Secrets reads the files and returns both secrets. The error is [fielderr.Errors].
func (k Keys) Secrets() (keys.Secrets, error) {
	var es fielderr.Errors
	s := k.read(&es)
	return s, es.Err()
}

func (k Keys) check(es *fielderr.Errors) { k.read(es) }

func (k Keys) read(es *fielderr.Errors) (s keys.Secrets) {
	s.Current = readSecret(es, "keys.secret", k.Secret, k.SecretFile)
	s.Second = readSecret(es, "keys.second_secret", k.SecondSecret, k.SecondSecretFile)
	if s.Current.Same(s.Second) {
		es.Add("keys.second_secret", "must differ from keys.secret")
	}
	return s
}

// maxSecretFile is far above any secret, in bytes.
const maxSecretFile = 64 << 10

// readSecret returns the secret of the field at path, or nil without a secret.
func readSecret(es *fielderr.Errors, path, text, file string) *keys.Secret {
	switch {
	case text != "" && file != "":
		es.Add(path, "and %s_file exclude each other", path)
		return nil
	case file != "":
		path += "_file"
		read, err := readBounded(file, maxSecretFile)
		if err != nil {
			es.Add(path, "%s", err)
			return nil
		}
		text = string(read)
	case text == "":
		return nil
	}
	secret, err := keys.ParseSecret(text)
	if err != nil {
		es.Add(path, "%s", err)
	}
	return secret
}

// redacted returns a copy without the secrets.
func (k Keys) redacted() Keys {
	for _, secret := range []*string{&k.Secret, &k.SecondSecret} {
		if *secret != "" {
			*secret = Redacted
		}
	}
	return k
}
