package embedded

import (
	"bytes"
	"context"

	bolt "go.etcd.io/bbolt"
)

// EraseCounters implements admin.Eraser. The counters of a client lie side by
// side, and among them those of a user.
func (s *Store) EraseCounters(ctx context.Context, clientID string, username *string) error {
	prefix := appendString(nil, clientID)
	if username != nil {
		prefix = appendString(prefix, *username)
	}
	for {
		var found [][]byte
		err := s.view(ctx, func(tx *bolt.Tx) error {
			found = nil
			c := tx.Bucket(buckets[counters]).Cursor()
			for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix) && len(found) < sweepStep; k, _ = c.Next() {
				found = append(found, bytes.Clone(k))
			}
			return nil
		})
		if err != nil || len(found) == 0 {
			return err
		}
		err = s.writes.do(ctx, func(w *writeTx) error {
			for _, key := range found {
				if err := w.delete(counters, key); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
}
