package keys

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// MinSecretLength is the minimum length of a secret in bytes.
const MinSecretLength = 32

// An encrypted private key is stored as
//
//	"enc1"  id of the secret  nonce     ciphertext and tag
//	4 bytes 8 bytes           12 bytes  AES-256-GCM
//
// A plain one is PKCS #8, which starts with the byte 0x30. The key's ID, algorithm and generation
// are authenticated with it, so a ciphertext is useless in another record.
const (
	envelopeMark   = "enc"
	envelopeV1     = envelopeMark + "1"
	secretIDLength = 8
)

// The info parameters of HKDF. They separate the values derived from one secret.
const (
	infoCipher = "oauth-server: encryption of signing keys, AES-256-GCM"
	infoName   = "oauth-server: identifier of the secret of signing keys"
)

// Errors for a stored key that cannot be read, wrapped with the ID of the key.
var (
	// ErrNoSecret is returned for an encrypted key if there are no secrets.
	ErrNoSecret = errors.New("it is encrypted, but no secret is set")
	// ErrOtherSecret is returned for a key that was encrypted with a secret other than the given
	// ones.
	ErrOtherSecret = errors.New("it is encrypted with a secret that is not set")
	// ErrDamaged is returned for a key that was encrypted with a given secret, but was changed
	// since or belongs to another record.
	ErrDamaged = errors.New("its ciphertext is damaged or belongs to another key")
)

// Secret encrypts private keys for the store. It never prints the bytes that it was made from.
type Secret struct {
	id   []byte // identifies the secret without revealing anything about it
	aead cipher.AEAD
}

// ParseSecret derives a secret from an operator's text: base64 of at least [MinSecretLength] random
// bytes, in either alphabet, with or without padding. Surrounding white space is ignored. Errors
// never quote the text.
func ParseSecret(text string) (*Secret, error) {
	text = strings.TrimRight(strings.TrimSpace(text), "=")
	text = strings.NewReplacer("+", "-", "/", "_").Replace(text)
	random, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(random) < MinSecretLength || distinct(random) < MinSecretLength/2 {
		return nil, fmt.Errorf("must be base64 of at least %d random bytes, such as from openssl rand -base64 %d; white space around it is ignored",
			MinSecretLength, MinSecretLength)
	}
	return newSecret(random)
}

// distinct returns the number of different byte values. 32 random bytes have about 30, and fewer
// than 16 with a probability below 10^-16.
func distinct(random []byte) int {
	seen := map[byte]bool{}
	for _, b := range random {
		seen[b] = true
	}
	return len(seen)
}

func newSecret(random []byte) (*Secret, error) {
	key, err := hkdf.Key(sha256.New, random, nil, infoCipher, 32)
	if err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	id, err := hkdf.Key(sha256.New, random, nil, infoName, secretIDLength)
	if err != nil {
		return nil, fmt.Errorf("derive identifier: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("make cipher: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("make cipher: %w", err)
	}
	return &Secret{id: id, aead: aead}, nil
}

// Same reports whether both secrets were made from the same bytes.
func (s *Secret) Same(other *Secret) bool {
	return s != nil && other != nil && bytes.Equal(s.id, other.id)
}

// encrypt returns the stored form of a private key.
func (s *Secret) encrypt(r Record, pkcs8 []byte) []byte {
	envelope := append([]byte(envelopeV1), s.id...)
	return s.aead.Seal(envelope, nil, pkcs8, associated(r)) //nolint:gosec // G407: the AEAD makes a random nonce itself
}

// associated returns the data authenticated with a private key. None of its parts contains a line
// break.
func associated(r Record) []byte {
	return fmt.Appendf(nil, "%s\n%s\n%s\n%d", envelopeV1, r.ID, r.Algorithm, r.Generation)
}

// Secrets encrypt and decrypt private keys in the store. Without secrets, keys are stored in clear
// and encrypted keys cannot be read.
type Secrets struct {
	Current *Secret // encrypts and decrypts; if nil, new keys are not encrypted
	Second  *Secret // decrypts only; the old or the next secret during a change; may be nil
}

// Encryption is how a private key is stored.
type Encryption string

// The kinds of [Encryption].
const (
	Plain       Encryption = "none"
	WithCurrent Encryption = "current" // by Secrets.Current
	WithSecond  Encryption = "second"  // by Secrets.Second
	WithOther   Encryption = "other"   // by a secret that is not in Secrets
)

// Of returns how the private key is stored.
func (s Secrets) Of(r Record) Encryption {
	how, _, _ := s.find(r)
	return how
}

// find returns how the private key is stored, the secret that decrypts it, if any, and the body
// after the header.
func (s Secrets) find(r Record) (Encryption, *Secret, []byte) {
	body, encrypted := bytes.CutPrefix(r.PrivateKey, []byte(envelopeMark))
	if !encrypted {
		return Plain, nil, r.PrivateKey
	}
	body, known := bytes.CutPrefix(body, []byte(envelopeV1[len(envelopeMark):]))
	if !known || len(body) < secretIDLength {
		return WithOther, nil, nil
	}
	id, body := body[:secretIDLength], body[secretIDLength:]
	switch {
	case s.Current != nil && bytes.Equal(id, s.Current.id):
		return WithCurrent, s.Current, body
	case s.Second != nil && bytes.Equal(id, s.Second.id):
		return WithSecond, s.Second, body
	}
	return WithOther, nil, nil
}

// seal returns the private key in its stored form.
func (s Secrets) seal(r Record, pkcs8 []byte) []byte {
	if s.Current == nil {
		return pkcs8
	}
	return s.Current.encrypt(r, pkcs8)
}

// open returns the private key of a stored record as PKCS #8. Errors: [ErrNoSecret],
// [ErrOtherSecret], [ErrDamaged].
func (s Secrets) open(r Record) ([]byte, error) {
	how, secret, body := s.find(r)
	switch {
	case how == Plain:
		return body, nil
	case secret == nil && s == Secrets{}:
		return nil, fmt.Errorf("keys: key %q: %w", r.ID, ErrNoSecret)
	case secret == nil:
		return nil, fmt.Errorf("keys: key %q: %w", r.ID, ErrOtherSecret)
	}
	pkcs8, err := secret.aead.Open(nil, nil, body, associated(r))
	if err != nil {
		return nil, fmt.Errorf("keys: key %q: %w", r.ID, ErrDamaged)
	}
	return pkcs8, nil
}
