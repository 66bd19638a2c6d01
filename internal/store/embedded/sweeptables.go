package embedded

import (
	"bytes"
	"context"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/store"
)

// sweptAtOnce bounds how many records of a table one sweep passes: with a sweep each minute, a million are
// passed in ten minutes. What it removes does not count, so that it keeps up with any load.
const sweptAtOnce = 100_000

// sweepTables removes the records that expired before now. The tables have no index of that: a sweep reads
// a part of each, from the key at which the one before ended.
func (s *Store) sweepTables(ctx context.Context, now time.Time) (removed int, err error) {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	var tables []string
	err = s.view(ctx, func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, _ *bolt.Bucket) error {
			if n := string(name); !strings.HasSuffix(n, ownersSuffix) && n != string(trailBucket) && n != string(buckets[counters]) {
				tables = append(tables, n)
			}
			return nil
		})
	})
	for _, name := range tables {
		if err != nil {
			break
		}
		var n int
		n, err = s.sweepTable(ctx, name, now)
		removed += n
	}
	return removed + s.volatile.sweep(now.Truncate(time.Millisecond)), err
}

func (s *Store) sweepTable(ctx context.Context, name string, now time.Time) (removed int, err error) {
	if s.tablesSweptTo == nil {
		s.tablesSweptTo = map[string][]byte{}
	}
	for left := sweptAtOnce; left > 0; {
		var due []string
		from := s.tablesSweptTo[name]
		err = s.view(ctx, func(tx *bolt.Tx) error {
			var passed int
			due, passed, from = dueRecords(tx.Bucket([]byte(name)), from, now.UnixMilli())
			left -= passed - len(due)
			return nil
		})
		if err == nil && len(due) > 0 {
			var n int
			n, err = s.dropDue(ctx, name, due, now.UnixMilli())
			removed += n
		}
		if err != nil {
			return removed, err
		}
		if s.tablesSweptTo[name] = from; from == nil {
			break
		}
	}
	return removed, nil
}

// dueRecords reads a part of a table from a key on. It returns the keys of what has expired, at most as many
// as one transaction removes, how many records it passed, and the key to continue with, nil at the end.
func dueRecords(b *bolt.Bucket, from []byte, now int64) (due []string, passed int, next []byte) {
	if b == nil {
		return nil, 0, nil
	}
	c := b.Cursor()
	k, v := c.Seek(from)
	for ; k != nil && passed < partRecords && len(due) < sweepStep; passed++ {
		if r, err := decodeRecord(v); err == nil && r.expired(now) {
			due = append(due, string(k))
		}
		k, v = c.Next()
	}
	if bytes.Compare(k, from) <= 0 { // also in a damaged file, where the keys are not in order
		return due, passed, nil
	}
	return due, passed, bytes.Clone(k)
}

func (s *Store) dropDue(ctx context.Context, name string, due []string, now int64) (removed int, err error) {
	err = s.writes.do(ctx, func(w *writeTx) error {
		removed = 0 // a change may run more than once
		tb := w.table(store.Table{Name: name, ByOwner: w.tx.Bucket([]byte(name+ownersSuffix)) != nil})
		for _, key := range due {
			if r, err := decodeRecord(tb.get(key)); err != nil || !r.expired(now) {
				continue // it was written in the meantime
			}
			if err := tb.delete(key); err != nil {
				return err
			}
			removed++
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return removed, nil
}
