package bolt

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"oauth-server/internal/store"
)

// sweepStep bounds how many records one transaction writes, so that requests can write in between.
const sweepStep = 256

// sweptAtOnce bounds how many records of a table one sweep passes. With a sweep each minute, a
// million records take ten minutes. Removed records do not count, so the sweep keeps up with any
// load.
const sweptAtOnce = 100_000

// Sweep removes records that expired before now, in bounded steps, and returns how many. Expiry has no
// index: Sweep reads a part of each table, starting at the key where the previous sweep ended.
func (s *Store) Sweep(ctx context.Context, now time.Time) (removed int, err error) {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	var tables []store.Table
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, _ *bbolt.Bucket) error {
			if n := string(name); !strings.HasSuffix(n, ownersSuffix) && n != trailBucket {
				tables = append(tables, store.Table{Name: n, ByOwner: tx.Bucket([]byte(n+ownersSuffix)) != nil})
			}
			return nil
		})
	})
	for i := 0; i < len(tables) && err == nil; i++ {
		var n int
		n, err = s.sweepTable(ctx, tables[i], now)
		removed += n
	}
	return removed, err
}

// expired reports whether a record expired before now. An unreadable record never expires.
func expired(value []byte, now time.Time) bool {
	r, err := decodeRecord(value)
	return err == nil && r.expires != 0 && r.expires < now.UnixMilli()
}

func (s *Store) sweepTable(ctx context.Context, t store.Table, now time.Time) (removed int, err error) {
	for left := sweptAtOnce; left > 0; {
		var due []string
		next, passed := "", 0
		err := s.read(ctx, t, func(tb *table) {
			for k, v := range from(tb.records, s.sweptTo[t.Name]) {
				if passed == partRecords || len(due) == sweepStep {
					next = string(k)
					break
				}
				if passed++; expired(v, now) {
					due = append(due, string(k))
				}
			}
		})
		if err == nil && len(due) > 0 {
			err = s.change(ctx, t, func(tb *table) error {
				due = slices.DeleteFunc(due, func(key string) bool { return !expired(tb.get(key), now) }) // written meanwhile
				return tb.deleteAll(due)
			})
		}
		if err != nil {
			return removed, err
		}
		removed += len(due)
		left -= passed - len(due)
		if s.sweptTo[t.Name] = next; next == "" {
			break
		}
	}
	return removed, nil
}
