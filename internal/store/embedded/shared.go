package embedded

import (
	"bytes"
	"context"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/keys"
)

// sharedKey is where a shared secret is, among the settings, which earlier releases leave as they are.
func sharedKey(name string) []byte { return []byte("shared/" + name) }

// Shared implements [keys.SharedStore].
func (s *Store) Shared(ctx context.Context, name string) (value []byte, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		value = bytes.Clone(get(tx, settings, sharedKey(name)))
		return nil
	})
	return value, err
}

// PutShared implements [keys.SharedStore].
func (s *Store) PutShared(ctx context.Context, name string, before, after []byte) error {
	return s.writes.do(ctx, func(w *writeTx) error {
		stored := w.get(settings, sharedKey(name))
		if (stored == nil) != (before == nil) || !bytes.Equal(stored, before) {
			return keys.ErrSharedChanged
		}
		return w.put(settings, sharedKey(name), after)
	})
}
