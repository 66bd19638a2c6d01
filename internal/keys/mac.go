package keys

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
)

// ErrSharedChanged is returned by [SharedStore.PutShared] when the secret is not as the caller has
// read it.
var ErrSharedChanged = errors.New("keys: the shared secret was stored by another instance meanwhile")

// SharedStore keeps secrets that all instances share, by name. They are no records of a [Store],
// because a release that knows signing keys only refuses to run if it finds anything else among them.
// Implementations MUST be safe for concurrent use and durable before they return nil.
type SharedStore interface {
	// Shared returns the secret of that name, nil if there is none.
	Shared(ctx context.Context, name string) ([]byte, error)
	// PutShared stores the secret if what is stored is before, nil for nothing. ErrSharedChanged: of
	// many instances that store it at once, one wins.
	PutShared(ctx context.Context, name string, before, after []byte) error
}

// The key of a [MAC] is stored as a mark, which shows the form, and macLength random bytes.
const (
	macName   = "mac"
	macMark   = "mac1"
	macLength = 32
)

// MAC derives secrets from other secrets with a key that all instances share: without the key, what
// is derived cannot be computed from what it is derived from. It is safe for concurrent use.
type MAC struct{ key []byte }

// OpenMAC reads the key, and makes it if there is none.
func OpenMAC(ctx context.Context, store SharedStore) (*MAC, error) {
	for {
		stored, err := store.Shared(ctx, macName)
		if err != nil {
			return nil, fmt.Errorf("keys: read shared secret %q: %w", macName, err)
		}
		if stored != nil {
			return parseMAC(stored)
		}
		fresh := make([]byte, macLength)
		_, _ = rand.Read(fresh) // never fails
		err = store.PutShared(ctx, macName, nil, append([]byte(macMark), fresh...))
		if err != nil && !errors.Is(err, ErrSharedChanged) {
			return nil, fmt.Errorf("keys: store shared secret %q: %w", macName, err)
		}
	}
}

func parseMAC(stored []byte) (*MAC, error) {
	key, ok := bytes.CutPrefix(stored, []byte(macMark))
	if !ok || len(key) != macLength {
		return nil, fmt.Errorf("keys: shared secret %q: its form is not known", macName)
	}
	return &MAC{key: key}, nil
}

// Derive returns 43 characters of base64url: HMAC-SHA-256 of the purpose and the secret. Secrets
// derived for different purposes have nothing to do with each other.
func (m *MAC) Derive(purpose, secret string) string {
	h := hmac.New(sha256.New, m.key)
	_, _ = h.Write([]byte(purpose + "\x00" + secret)) // a hash never fails to write
	return b64(h.Sum(nil))
}
