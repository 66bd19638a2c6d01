package keys

import (
	"context"
	"errors"
	"time"
)

// ErrExists is returned by [Store.AddKey] when another instance was first.
var ErrExists = errors.New("keys: that generation exists already")

// ErrConflict is returned by [Store.ReplaceKey] when the key is not as the caller has read it.
var ErrConflict = errors.New("keys: the key was changed or deleted meanwhile")

// Record is one signing key as it is stored.
type Record struct {
	ID         string    // RFC 7638 thumbprint of the public key
	Algorithm  Algorithm // RFC 7518 name
	Generation int64     // 1, 2, 3… per algorithm
	PrivateKey []byte    // PKCS #8, or that encrypted by [Secrets]
	CreatedAt  time.Time
	// ActiveFrom is when signing with it begins: later than CreatedAt, so that verifiers have it
	// by then.
	ActiveFrom time.Time
}

// Store keeps the signing keys. Implementations MUST be safe for concurrent
// use and durable before they return nil.
type Store interface {
	// Keys returns all keys, in any order. A [store.ErrUnreadable] names those that cannot be read, and comes
	// with the others.
	Keys(ctx context.Context) ([]Record, error)
	// AddKey adds the key. ErrExists if there is one with the same Algorithm and Generation: of
	// many instances that rotate at once, one wins.
	AddKey(ctx context.Context, k Record) error
	// ReplaceKey replaces the PrivateKey of the key of that ID, which must be equal to before.
	// ErrConflict if it is not, or if there is no such key. Nothing else of the key changes.
	ReplaceKey(ctx context.Context, id string, before, after []byte) error
	// DeleteKey removes the key; one that is not there is no error.
	DeleteKey(ctx context.Context, id string) error
}
