package bolt

import (
	"context"
	"maps"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"oauth-server/internal/store"
)

// sweepStep bounds how many records one transaction writes, so that requests get their turn in between.
const sweepStep = 256

// sweptAtOnce bounds how many records of a table one sweep passes: with a sweep each minute, a million are
// passed in ten minutes. What it removes does not count, so that it keeps up with any load.
const sweptAtOnce = 100_000

// Sweep implements [store.Sweeper]. There is no index of what expires: it
// reads a part of each table, from the key at which the one before ended.
func (s *Store) Sweep(ctx context.Context, now time.Time) (removed int, err error) {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	var tables []string
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, _ *bbolt.Bucket) error {
			if n := string(name); !strings.HasSuffix(n, ownersSuffix) && n != trailBucket {
				tables = append(tables, n)
			}
			return nil
		})
	})
	for i := 0; i < len(tables) && err == nil; i++ {
		var n int
		n, err = s.sweepTable(ctx, tables[i], expiredBefore(now))
		removed += n
	}
	if err == nil {
		removed += s.sweepMemory(now)
	}
	return removed, err
}

// expiredBefore returns what reports whether a record has expired. One that cannot be read has not.
func expiredBefore(now time.Time) func(value []byte) bool {
	return func(value []byte) bool {
		r, err := decodeRecord(value)
		return err == nil && r.expires != 0 && r.expires < now.UnixMilli()
	}
}

func (s *Store) sweepMemory(now time.Time) (removed int) {
	s.volatile.Lock()
	defer s.volatile.Unlock()
	expired := expiredBefore(now)
	for _, table := range s.inMemory {
		before := len(table)
		maps.DeleteFunc(table, func(_ string, value []byte) bool { return expired(value) })
		removed += before - len(table)
	}
	return removed
}

func (s *Store) sweepTable(ctx context.Context, name string, expired func(value []byte) bool) (removed int, err error) {
	for left := sweptAtOnce; left > 0; {
		var due []string
		next, passed := "", 0
		err := s.view(ctx, func(tx *bbolt.Tx) error {
			for k, v := range from(bucketOf(tx, name), s.sweptTo[name]) {
				if passed == partRecords || len(due) == sweepStep {
					next = string(k)
					break
				}
				if passed++; expired(v) {
					due = append(due, string(k))
				}
			}
			return nil
		})
		dropped := 0
		if err == nil && len(due) > 0 {
			dropped, err = s.dropDue(ctx, name, due, expired)
		}
		if err != nil {
			return removed, err
		}
		removed += dropped
		left -= passed - len(due)
		if s.sweptTo[name] = next; next == "" {
			break
		}
	}
	return removed, nil
}

// dropDue removes records, unless they were written in the meantime, and returns how many.
func (s *Store) dropDue(ctx context.Context, name string, due []string, expired func(value []byte) bool) (dropped int, err error) {
	err = s.writes.do(ctx, func(w *writeTx) error {
		dropped = 0 // a change may run more than once
		tb, err := w.table(store.Table{Name: name, ByOwner: w.tx.Bucket([]byte(name+ownersSuffix)) != nil})
		for i := 0; i < len(due) && err == nil; i++ {
			if expired(tb.records.Get([]byte(due[i]))) {
				dropped++
				err = tb.delete(due[i])
			}
		}
		return err
	})
	return dropped, err
}
