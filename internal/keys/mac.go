package keys

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"log/slog"
	"sync"
)

// ErrSharedChanged is returned by [SharedStore.PutShared] if the stored secret differs from the one
// that the caller has read.
var ErrSharedChanged = errors.New("keys: another instance stored the shared secret first")

// SharedStore stores secrets that all instances share, by name. They are not in the [Store] of
// keys, because a release that knows only signing keys refuses to start if it finds other records
// there. Implementations MUST be safe for concurrent use, and writes MUST be durable when they
// return nil.
type SharedStore interface {
	// Shared returns the secret with that name, or nil.
	Shared(ctx context.Context, name string) ([]byte, error)
	// PutShared stores after if the stored secret equals before. A nil before means no stored
	// secret. It returns ErrSharedChanged otherwise. Of many instances that store a secret at once,
	// exactly one succeeds.
	PutShared(ctx context.Context, name string, before, after []byte) error
}

// The key of a [MAC] is a mark for the format, followed by macLength random bytes. It is encrypted
// in the same way as signing keys.
const (
	macName   = "mac"
	macMark   = "mac1"
	macLength = 32
)

// macRecord wraps a MAC key in a Record for [Secrets].
func macRecord(stored []byte) Record {
	return Record{ID: macName, Algorithm: "HS256", Generation: 1, PrivateKey: stored}
}

// MAC derives secrets from other secrets with a key that all instances share. Without the key, a
// derived secret cannot be computed from its input. It is safe for concurrent use.
type MAC struct {
	key  []byte
	idle sync.Pool // of *keyed: making one takes longer and leaves more garbage than using it
}

// keyed is an HMAC with its key, and the space for a sum.
type keyed struct {
	hash.Hash
	sum [sha256.Size]byte
}

// OpenMAC reads the MAC key, or makes it if there is none yet. It encrypts a key that is not
// encrypted with the current secret. It replaces a key that no secret decrypts, with a warning. In
// that case the old secret is lost, because [Open] has succeeded with these secrets, and refresh
// tokens issued with the old key are refused.
func OpenMAC(ctx context.Context, store SharedStore, secrets Secrets, log *slog.Logger) (*MAC, error) {
	for {
		stored, err := store.Shared(ctx, macName)
		if err != nil {
			return nil, fmt.Errorf("keys: read shared secret %q: %w", macName, err)
		}
		plain, err := openMAC(ctx, stored, secrets, log)
		if err != nil {
			return nil, err
		}
		r := macRecord(stored)
		if stored != nil && (secrets.Current == nil && secrets.Of(r) != WithOther || secrets.Of(r) == WithCurrent) {
			return &MAC{key: plain[len(macMark):]}, nil
		}
		err = store.PutShared(ctx, macName, stored, secrets.seal(r, plain))
		if err != nil && !errors.Is(err, ErrSharedChanged) {
			return nil, fmt.Errorf("keys: store shared secret %q: %w", macName, err)
		}
	}
}

// openMAC returns the stored key with its mark, or a new one.
func openMAC(ctx context.Context, stored []byte, secrets Secrets, log *slog.Logger) ([]byte, error) {
	fresh := append([]byte(macMark), make([]byte, macLength)...)
	_, _ = rand.Read(fresh[len(macMark):]) // never fails
	if stored == nil {
		return fresh, nil
	}
	plain, err := secrets.open(macRecord(stored))
	switch {
	case errors.Is(err, ErrNoSecret), errors.Is(err, ErrOtherSecret):
		log.WarnContext(ctx, "shared key cannot be decrypted and was replaced: refresh tokens and counts of wrong passwords are lost", slog.Any("error", err))
		return fresh, nil
	case err != nil:
		return nil, err
	}
	return plain, checkMAC(plain)
}

// checkMAC returns an error unless plain is the key of a MAC, with its mark.
func checkMAC(plain []byte) error {
	if !bytes.HasPrefix(plain, []byte(macMark)) || len(plain) != len(macMark)+macLength {
		return fmt.Errorf("keys: shared secret %q: unknown format", macName)
	}
	return nil
}

// Derive returns 43 characters of base64url: HMAC-SHA-256 of the purpose and the secret. Secrets
// derived for different purposes are unrelated.
func (m *MAC) Derive(purpose, secret string) string {
	h, ok := m.idle.Get().(*keyed)
	if !ok {
		h = &keyed{Hash: hmac.New(sha256.New, m.key)}
	}
	defer m.idle.Put(h)
	h.Reset()
	_, _ = h.Write([]byte(purpose + "\x00" + secret)) // a hash never fails to write
	return b64(h.Sum(h.sum[:0]))
}
