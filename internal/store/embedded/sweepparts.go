package embedded

import (
	"context"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"
)

// partPerSweep is how many records of a bucket without an index of their expiry one sweep reads at most:
// with a sweep each minute that is 983,040 an hour. They are void when they have expired, so it does not
// matter when they go.
const partPerSweep = 16 * counterStep

// sweepInParts removes the records of a bucket that expired before now. Each sweep reads some, from the
// key at which the one before ended, in bounded steps as for counters. The bucket may not be there.
func (s *Store) sweepInParts(ctx context.Context, bucket []byte, sweptTo *[]byte, now time.Time) (removed int, err error) {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	for read := 0; read < partPerSweep && err == nil; read += counterStep {
		var due [][]byte
		next := *sweptTo
		err = s.view(ctx, func(tx *bolt.Tx) error {
			due, next = nil, nil
			if b := tx.Bucket(bucket); b != nil {
				due, next = expired(b, *sweptTo, now)
			}
			return nil
		})
		if err == nil && len(due) > 0 {
			var n int
			n, err = s.removeDue(ctx, bucket, due, now)
			removed += n
		}
		if err == nil {
			*sweptTo = next
		}
		if next == nil {
			break
		}
	}
	return removed, err
}

func (s *Store) removeDue(ctx context.Context, bucket []byte, due [][]byte, now time.Time) (removed int, err error) {
	err = s.writes.do(ctx, func(w *writeTx) error {
		removed = 0 // a change may run more than once
		b := w.tx.Bucket(bucket)
		for _, key := range due {
			value := b.Get(key)
			if value == nil || !expiryOf(value).Before(now) {
				continue // it was used in the meantime
			}
			if err := b.Delete(key); err != nil {
				return fmt.Errorf("embedded: delete from %s: %w", bucket, err)
			}
			w.touched, w.dirty = true, true
			removed++
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return removed, nil
}
