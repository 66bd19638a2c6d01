package embedded

import (
	"bytes"
	"context"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// CountersOf implements admin.StoredCounters.
func (s *Store) CountersOf(ctx context.Context, clientID string, username *string, limit int) (records []syncer.Record, err error) {
	prefix := counterPrefix(clientID, username)
	err = s.view(ctx, func(tx *bolt.Tx) error {
		records = nil
		c := tx.Bucket([]byte(countersBucket)).Cursor()
		for k, value := c.Seek(prefix); bytes.HasPrefix(k, prefix) && len(records) < limit; k, value = c.Next() {
			id, err := counterIDOf(k)
			if err != nil {
				return err
			}
			records = append(records, *counterRecord(id, value))
		}
		return nil
	})
	return records, err
}

// counterPrefix returns what the keys of a client's counters begin with, or those of one of its
// usernames.
func counterPrefix(clientID string, username *string) []byte {
	prefix := appendString(nil, clientID)
	if username != nil {
		prefix = appendString(prefix, *username)
	}
	return prefix
}

// counterIDOf is the inverse of counterKey.
func counterIDOf(key []byte) (ratelimit.CounterID, error) {
	d := &decoder{rest: key}
	id := ratelimit.CounterID{ClientID: d.string(), Username: d.string(), Limit: d.string()}
	return id, d.finish()
}

// EraseCounters implements admin.Eraser. The keys of a client's counters are adjacent, and among them
// those of a user.
func (s *Store) EraseCounters(ctx context.Context, clientID string, username *string) error {
	prefix := counterPrefix(clientID, username)
	for more := true; more; {
		err := s.writes.do(ctx, func(w *writeTx) error {
			c := w.tx.Bucket([]byte(countersBucket)).Cursor()
			for range sweepStep {
				k, _ := c.Seek(prefix)
				if more = bytes.HasPrefix(k, prefix); !more {
					return nil
				}
				w.touch()
				if err := c.Delete(); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
