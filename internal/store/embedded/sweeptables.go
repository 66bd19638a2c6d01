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

// Sweep implements [store.Sweeper], and removes expired counters too. There is no index of what expires: it
// reads a part of each table, from the key at which the one before ended.
func (s *Store) Sweep(ctx context.Context, now time.Time) (removed int, err error) {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	var tables []string
	err = s.view(ctx, func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, _ *bolt.Bucket) error {
			if n := string(name); !strings.HasSuffix(n, ownersSuffix) && n != string(trailBucket) {
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
		n, err = s.sweepTable(ctx, name, expiredBefore(name, now))
		removed += n
	}
	if err == nil {
		removed += s.volatile.sweep(now.Truncate(time.Millisecond))
	}
	return removed, err
}

// expiredBefore returns what reports whether a value of a table has expired. One that cannot be read has not.
func expiredBefore(table string, now time.Time) func(value []byte) bool {
	if table == string(buckets[counters]) {
		return func(value []byte) bool {
			d, expires := open(value)
			return d.err == nil && expires.Before(now)
		}
	}
	return func(value []byte) bool {
		r, err := decodeRecord(value)
		return err == nil && r.expires != 0 && r.expires < now.UnixMilli()
	}
}

func (s *Store) sweepTable(ctx context.Context, name string, expired func(value []byte) bool) (removed int, err error) {
	if s.tablesSweptTo == nil {
		s.tablesSweptTo = map[string][]byte{}
	}
	for left := sweptAtOnce; left > 0; {
		var due []string
		from := s.tablesSweptTo[name]
		err = s.view(ctx, func(tx *bolt.Tx) error {
			var passed int
			due, passed, from = dueRecords(tx.Bucket([]byte(name)), from, expired)
			left -= passed - len(due)
			return nil
		})
		if err == nil && len(due) > 0 {
			var n int
			n, err = s.dropDue(ctx, name, due, expired)
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
func dueRecords(b *bolt.Bucket, from []byte, expired func(value []byte) bool) (due []string, passed int, next []byte) {
	if b == nil {
		return nil, 0, nil
	}
	c := b.Cursor()
	k, v := c.Seek(from)
	for ; k != nil && passed < partRecords && len(due) < sweepStep; passed++ {
		if expired(v) {
			due = append(due, string(k))
		}
		k, v = c.Next()
	}
	if bytes.Compare(k, from) <= 0 { // also in a damaged file, where the keys are not in order
		return due, passed, nil
	}
	return due, passed, bytes.Clone(k)
}

func (s *Store) dropDue(ctx context.Context, name string, due []string, expired func(value []byte) bool) (removed int, err error) {
	err = s.writes.do(ctx, func(w *writeTx) error {
		removed = 0 // a change may run more than once
		tb := w.table(store.Table{Name: name, ByOwner: w.tx.Bucket([]byte(name+ownersSuffix)) != nil})
		for _, key := range due {
			if !expired(tb.get(key)) {
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
