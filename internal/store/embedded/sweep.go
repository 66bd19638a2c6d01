package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"time"

	bolt "go.etcd.io/bbolt"
)

// sweepStep bounds how many records one transaction removes, so that requests
// get their turn in between.
const sweepStep = 256

// Sweep implements [grants.Sweeper], and removes expired counters too. What is
// still in the journals is looked at in memory. For the rest it walks the
// expiry index from its start, so it costs what has expired, not what is
// stored; only counters are looked at one by one.
func (s *Store) Sweep(ctx context.Context, now time.Time) (int, error) {
	removed := 0
	for _, sweep := range []func(context.Context, time.Time) (int, error){s.sweepRecent, s.sweepIndex, s.sweepCounters} {
		n, err := sweep(ctx, now)
		removed += n
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

func (s *Store) sweepRecent(ctx context.Context, now time.Time) (removed int, err error) {
	for {
		due := s.writes.recent.due(now, sweepStep)
		if err := ctx.Err(); err != nil || len(due) == 0 {
			return removed, err
		}
		n, err := s.removeExpired(ctx, due, now)
		removed += n
		if err != nil || n == 0 { // others were faster
			return removed, err
		}
	}
}

// sweepIndex goes through the index once. What it removes stays in the index
// until the journal is folded, and is known by being removed already.
func (s *Store) sweepIndex(ctx context.Context, now time.Time) (removed int, err error) {
	for from := []byte{0}; from != nil; {
		var due []place
		err = s.view(ctx, func(tx *bolt.Tx) (err error) {
			due, from, err = expired(tx, from, now)
			return err
		})
		if err != nil {
			return removed, err
		}
		n, err := s.removeExpired(ctx, due, now)
		removed += n
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// expired returns places of the expiry index that lie before now, from a key
// on, and the key to go on with, nil at the end.
func expired(tx *bolt.Tx, from []byte, now time.Time) (due []place, next []byte, err error) {
	limit := binary.BigEndian.AppendUint64(nil, sortable(now))
	cursor := tx.Bucket(buckets[expiries]).Cursor()
	for k, _ := cursor.Seek(from); k != nil && bytes.Compare(k, limit) < 0; k, _ = cursor.Next() {
		if len(due) == sweepStep {
			return due, bytes.Clone(k), nil
		}
		p, err := parseExpiryKey(k)
		if err != nil {
			return nil, nil, err
		}
		due = append(due, p)
	}
	return due, nil, nil
}

// removeExpired removes those records whose newest value expired before now,
// and returns how many.
func (s *Store) removeExpired(ctx context.Context, due []place, now time.Time) (removed int, err error) {
	if len(due) == 0 {
		return 0, nil
	}
	err = s.writes.do(ctx, func(w *writeTx) error {
		removed = 0 // a change may run more than once
		for _, p := range due {
			if value := w.find(p); value != nil && expiryOf(value).Before(now) {
				w.stage(p, nil)
				removed++
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return removed, nil
}
