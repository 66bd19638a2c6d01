package keys

import (
	"context"
	"errors"
	"time"
)

// ErrExists is returned by [Store.AddKey] if another instance was first.
var ErrExists = errors.New("keys: generation already exists")

// ErrConflict is returned by [Store.ReplaceKey] if the stored key differs from the one that the
// caller has read.
var ErrConflict = errors.New("keys: key changed or deleted by another instance")

// Record is a signing key as stored.
type Record struct {
	ID         string    `json:"kid"`        // RFC 7638 thumbprint of the public key
	Algorithm  Algorithm `json:"alg"`        // RFC 7518 name
	Generation int64     `json:"generation"` // 1, 2, 3… per algorithm
	PrivateKey []byte    `json:"privateKey"` // PKCS #8, plain or encrypted by [Secrets]
	CreatedAt  time.Time `json:"createdAt"`
	// ActiveFrom is when the key starts signing. It is later than CreatedAt, to give verifiers time
	// to fetch the key.
	ActiveFrom time.Time `json:"activeFrom"`
}

// Store stores the signing keys. Implementations MUST be safe for concurrent use, and writes MUST
// be durable when they return nil.
type Store interface {
	// Keys returns all keys, in any order. If some cannot be read, it returns the others with a
	// [store.ErrUnreadable] that names them.
	Keys(ctx context.Context) ([]Record, error)
	// AddKey adds a key. It returns ErrExists if there is already one with the same Algorithm and
	// Generation. Of many instances that rotate at once, exactly one succeeds.
	AddKey(ctx context.Context, k Record) error
	// ReplaceKey replaces the PrivateKey of the key with that ID, if it equals before. Otherwise,
	// or if there is no such key, it returns ErrConflict. Nothing else of the key changes.
	ReplaceKey(ctx context.Context, id string, before, after []byte) error
	// DeleteKey removes the key. It returns nil if there is no such key.
	DeleteKey(ctx context.Context, id string) error
}
