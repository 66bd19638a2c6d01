package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"
)

// sweepStep bounds how many records one transaction removes, so that requests
// get their turn in between.
const sweepStep = 256

// Sweep implements [grants.Sweeper], and removes expired counters too. It walks
// the expiry index from its start, so it costs what has expired, not what is
// stored; only counters are looked at one by one.
func (s *Store) Sweep(ctx context.Context, now time.Time) (int, error) {
	removed := 0
	for {
		seen, n, err := s.sweepStep(ctx, now)
		removed += n
		if err != nil {
			return removed, err
		}
		if seen < sweepStep {
			break
		}
	}
	n, err := s.sweepCounters(ctx, now)
	return removed + n, err
}

func (s *Store) sweepStep(ctx context.Context, now time.Time) (seen, removed int, err error) {
	var due [][]byte
	err = s.view(ctx, func(tx *bolt.Tx) error {
		due = expired(tx, now)
		return nil
	})
	if err != nil || len(due) == 0 {
		return 0, 0, err
	}
	err = s.writes.do(ctx, func(w *writeTx) error {
		removed = 0 // a change may run more than once
		for _, entry := range due {
			gone, err := w.expire(entry)
			if err != nil {
				return err
			}
			if gone {
				removed++
			}
		}
		return nil
	})
	if err != nil {
		removed = 0
	}
	return len(due), removed, err
}

// expired returns the first entries of the expiry index that lie before now.
func expired(tx *bolt.Tx, now time.Time) (due [][]byte) {
	limit := binary.BigEndian.AppendUint64(nil, sortable(now))
	cursor := tx.Bucket(buckets[expiries]).Cursor()
	for k, _ := cursor.First(); k != nil && bytes.Compare(k, limit) < 0 && len(due) < sweepStep; k, _ = cursor.Next() {
		due = append(due, bytes.Clone(k))
	}
	return due
}

// expire removes an index entry and, if the record still expires then, the
// record; it reports whether a record went.
func (w *writeTx) expire(entry []byte) (bool, error) {
	if len(entry) < 9 {
		return false, fmt.Errorf("%w: an expiry of %d bytes", ErrCorrupt, len(entry))
	}
	if err := w.delete(expiries, entry); err != nil {
		return false, err
	}
	k, key := kind(entry[8]), entry[9:]
	if k > revocations || k == 0 {
		return false, fmt.Errorf("%w: an expiry of unknown kind %d", ErrCorrupt, k)
	}
	value := w.get(k, key)
	if len(value) < headerSize {
		return false, nil
	}
	if _, _, expires := open(value); sortable(expires) != binary.BigEndian.Uint64(entry) {
		return false, nil
	}
	return true, w.delete(k, key)
}

// deleteExpiring removes a record and its index entry, if it is there.
func (w *writeTx) deleteExpiring(k kind, key []byte) error {
	value := w.get(k, key)
	if value == nil {
		return nil
	}
	d, _, expires := open(value)
	if d.err != nil {
		return d.err
	}
	if err := w.delete(expiries, expiryKey(k, key, expires)); err != nil {
		return err
	}
	return w.delete(k, key)
}
