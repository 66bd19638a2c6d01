package embedded

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/keys"
)

type keyRecord struct {
	ID         string         `json:"kid"`
	Algorithm  keys.Algorithm `json:"alg"`
	Generation int64          `json:"generation"`
	PrivateKey []byte         `json:"private_key"`
	CreatedAt  time.Time      `json:"created_at"`
	ActiveFrom time.Time      `json:"active_from"`
}

func decodeKey(value []byte) (keys.Record, error) {
	var r keyRecord
	if err := json.Unmarshal(value, &r); err != nil {
		return keys.Record{}, fmt.Errorf("%w: signing key: %w", ErrCorrupt, err)
	}
	return keys.Record(r), nil
}

// Keys implements [keys.Store].
func (s *Store) Keys(ctx context.Context) (list []keys.Record, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		list = nil
		return tx.Bucket(buckets[signingKeys]).ForEach(func(_, value []byte) error {
			k, err := decodeKey(value)
			list = append(list, k)
			return err
		})
	})
	return list, err
}

// AddKey implements [keys.Store]. Records are stored under algorithm and generation, so that there can
// be one of each only.
func (s *Store) AddKey(ctx context.Context, k keys.Record) error {
	value, err := json.Marshal(keyRecord(k)) //nolint:gosec // the store is where private keys are kept
	if err != nil {
		return err
	}
	name := fmt.Appendf(nil, "%s/%d", k.Algorithm, k.Generation)
	return s.writes.do(ctx, func(w *writeTx) error {
		if w.get(signingKeys, name) != nil {
			return keys.ErrExists
		}
		return w.put(signingKeys, name, value)
	})
}

// ReplaceKey implements [keys.Store].
func (s *Store) ReplaceKey(ctx context.Context, id string, before, after []byte) error {
	return s.writes.do(ctx, func(w *writeTx) error {
		name, err := keyNamed(w.tx, id)
		if err != nil {
			return err
		}
		if name == nil {
			return keys.ErrConflict
		}
		k, err := decodeKey(w.get(signingKeys, name))
		if err != nil {
			return err
		}
		if !bytes.Equal(k.PrivateKey, before) {
			return keys.ErrConflict
		}
		k.PrivateKey = after
		value, err := json.Marshal(keyRecord(k)) //nolint:gosec // the store is where private keys are kept
		if err != nil {
			return err
		}
		return w.put(signingKeys, name, value)
	})
}

// DeleteKey implements [keys.Store].
func (s *Store) DeleteKey(ctx context.Context, id string) error {
	return s.writes.do(ctx, func(w *writeTx) error {
		name, err := keyNamed(w.tx, id)
		if err != nil || name == nil {
			return err
		}
		return w.delete(signingKeys, name)
	})
}

// keyNamed returns the name under which the key with that ID is stored, or nil.
func keyNamed(tx *bolt.Tx, id string) (name []byte, err error) {
	err = tx.Bucket(buckets[signingKeys]).ForEach(func(n, value []byte) error {
		k, err := decodeKey(value)
		if k.ID == id {
			name = bytes.Clone(n)
		}
		return err
	})
	return name, err
}
