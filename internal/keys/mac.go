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

// The key of a [MAC] is a mark, which shows the form, and macLength random bytes. It is encrypted as
// signing keys are.
const (
	macName   = "mac"
	macMark   = "mac1"
	macLength = 32
)

// macRecord is the key of a MAC as [Secrets] encrypt it.
func macRecord(stored []byte) Record {
	return Record{ID: macName, Algorithm: "HS256", Generation: 1, PrivateKey: stored}
}

// MAC derives secrets from other secrets with a key that all instances share: without the key, what
// is derived cannot be computed from what it is derived from. It is safe for concurrent use.
type MAC struct {
	key  []byte
	idle sync.Pool // of *keyed: to make one takes longer, and leaves more garbage, than to use it
}

// keyed is an HMAC with the key in it, and the space for a sum.
type keyed struct {
	hash.Hash
	sum [sha256.Size]byte
}

// OpenMAC reads the key, and makes it if there is none. One that is not encrypted with the current
// secret is encrypted with it. One that no secret decrypts is replaced with a warning: the secret was
// lost, for [Open] has succeeded with these secrets. Refresh tokens that were issued with it are refused
// then.
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

// openMAC returns the key, with its mark: the one that is stored, or a new one.
func openMAC(ctx context.Context, stored []byte, secrets Secrets, log *slog.Logger) ([]byte, error) {
	fresh := append([]byte(macMark), make([]byte, macLength)...)
	_, _ = rand.Read(fresh[len(macMark):]) // never fails
	if stored == nil {
		return fresh, nil
	}
	plain, err := secrets.open(macRecord(stored))
	switch {
	case errors.Is(err, ErrNoSecret), errors.Is(err, ErrOtherSecret):
		log.WarnContext(ctx, "key of refresh tokens and of counts of wrong passwords cannot be decrypted; replaced", "error", err)
		return fresh, nil
	case err != nil:
		return nil, err
	}
	return plain, checkMAC(plain)
}

// checkMAC returns an error unless plain is the key of a MAC, with its mark.
func checkMAC(plain []byte) error {
	if !bytes.HasPrefix(plain, []byte(macMark)) || len(plain) != len(macMark)+macLength {
		return fmt.Errorf("keys: shared secret %q: its form is not known", macName)
	}
	return nil
}

// Derive returns 43 characters of base64url: HMAC-SHA-256 of the purpose and the secret. Secrets
// derived for different purposes have nothing to do with each other.
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
