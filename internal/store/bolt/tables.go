package bolt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"oauth-server/internal/store"
)

// The records of a table are in a bucket, which is created at the first write. The index of a table by
// owner is a bucket of its own. Its keys are the owner, preceded by its length, and the key of the
// record.
const ownersSuffix = "/owners" // no table has such a name

func ownerKey(owner, key string) []byte { return append(appendString(nil, owner), key...) }

// valueIn returns the value of a key in a bucket; nil if there is no value or no bucket.
func valueIn(b *bbolt.Bucket, key []byte) []byte {
	if b == nil {
		return nil
	}
	return b.Get(key)
}

// from returns the keys and values of a bucket from a key on, in order; none if there is no bucket.
// In a damaged file bbolt may follow pages in a circle, and the keys are then out of order. from
// panics in this case, and the caller of the store gets [ErrCorrupt].
func from(b *bbolt.Bucket, key string) iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		if b == nil {
			return
		}
		c, last := b.Cursor(), []byte(nil)
		for k, v := c.Seek([]byte(key)); k != nil; k, v = c.Next() {
			if last != nil && bytes.Compare(k, last) <= 0 || last == nil && string(k) < key {
				panic(fmt.Sprintf("key %x is not in order", k))
			}
			if last = k; !yield(k, v) {
				return
			}
		}
	}
}

// Get implements [store.Backend].
func (s *Store) Get(ctx context.Context, t store.Table, each func(store.Record) error, keys ...string) error {
	var found []store.Record
	err := s.read(ctx, t, func(tb *table) {
		for _, key := range keys {
			if v := tb.get(key); v != nil {
				r, err := decodeRecord(v)
				found = append(found, r.record(key, bytes.Clone(r.value), err))
			}
		}
	})
	for i := 0; i < len(found) && err == nil; i++ {
		err = each(found[i])
	}
	return err
}

// partRecords and partBytes bound how much one transaction reads: until it ends, writers cannot
// reuse pages that they free.
const (
	partRecords = 4096
	partBytes   = 1 << 20
)

// List implements [store.Backend]. It reads in parts, one transaction each. An unreadable record
// has no owner and no time, so only a query without an owner and a time finds it.
func (s *Store) List(ctx context.Context, t store.Table, q store.Query, each func(store.Record) error) error {
	indexed, prefix, next := t.ByOwner && q.Owner != "", q.Prefix, ""
	if indexed {
		prefix = string(ownerKey(q.Owner, ""))
		next = prefix
	}
	next = max(prefix, next+q.After+"\x00") // no key is empty
	since := int64(math.MinInt64)
	if !q.ChangedSince.IsZero() {
		since = q.ChangedSince.Add(-store.ChangedOverlap).UnixMilli()
	}
	var part []store.Record
	var values []byte // of the part
	for left := cmp.Or(q.Limit, math.MaxInt); next != ""; left -= len(part) {
		err := s.read(ctx, t, func(tb *table) {
			walked, start, visited := tb.records, next, 0
			if indexed {
				walked = tb.owners
			}
			part, values, next = part[:0], values[:0], ""
			for k, v := range from(walked, start) {
				switch {
				case !strings.HasPrefix(string(k), prefix) || len(part) == left:
					return
				case visited == partRecords || len(values) >= partBytes:
					next = string(k)
					return
				case indexed:
					k = k[len(prefix):]
					v = valueIn(tb.records, k)
				}
				visited++
				r, err := decodeRecord(v)
				if q.Owner != "" && string(r.owner) != q.Owner || r.changed < since {
					continue
				}
				n := len(values)
				values = append(values, r.value...)
				part = append(part, r.record(string(k), values[n:len(values):len(values)], err))
			}
		})
		if err != nil {
			return err
		}
		for _, r := range part {
			if err := each(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// Put implements [store.Backend].
func (s *Store) Put(ctx context.Context, t store.Table, r store.Record, seen store.Seen) (store.Seen, error) {
	if err := errors.Join(checkObject(r.Value), r.Check()); err != nil {
		return store.Seen{}, err
	}
	r.Version, r.Nonce, r.Changed = seen.Version+1, store.NewNonce(), time.Now()
	value := encodeRecord(&r)
	err := s.change(ctx, t, func(tb *table) error {
		if err := tb.inState(r.Key, seen); err != nil {
			return err
		}
		return tb.put(r.Key, r.Owner, value)
	})
	if err != nil {
		return store.Seen{}, err
	}
	return r.Seen(), nil
}

// PutAll implements [store.Backend].
func (s *Store) PutAll(ctx context.Context, t store.Table, records []store.Record) error {
	now := time.Now()
	for part := range slices.Chunk(records, sweepStep) {
		values := make([][]byte, len(part))
		for i, r := range part {
			if err := errors.Join(checkObject(r.Value), r.Check()); err != nil {
				return err
			}
			r.Nonce, r.Changed = store.NewNonce(), now
			values[i] = encodeRecord(&r)
		}
		err := s.change(ctx, t, func(tb *table) error {
			for i, r := range part {
				if was, err := decodeRecord(tb.get(r.Key)); err == nil && was.version >= r.Version {
					continue
				}
				if err := tb.put(r.Key, r.Owner, values[i]); err != nil {
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

// Delete implements [store.Backend].
func (s *Store) Delete(ctx context.Context, t store.Table, seen *store.Seen, key string) error {
	return s.change(ctx, t, func(tb *table) error {
		if seen != nil {
			if err := tb.inState(key, *seen); err != nil {
				return err
			}
		}
		return tb.delete(key)
	})
}

// DeleteAll implements [store.Backend].
func (s *Store) DeleteAll(ctx context.Context, t store.Table, keys ...string) error {
	return s.change(ctx, t, func(tb *table) error { return tb.deleteAll(keys) })
}

// deleteWhile removes the records of a table from a key on, as long as due returns true, in bounded
// steps.
func (s *Store) deleteWhile(ctx context.Context, t store.Table, first string, due func(key, value []byte) bool) error {
	for more := true; more; {
		var keys []string
		err := s.change(ctx, t, func(tb *table) error {
			keys = nil // a change may run more than once
			for k, v := range from(tb.records, first) {
				if len(keys) == sweepStep || !due(k, v) {
					break
				}
				keys = append(keys, string(k))
			}
			return tb.deleteAll(keys)
		})
		if err != nil {
			return err
		}
		if more = len(keys) == sweepStep; more {
			first = keys[sweepStep-1] + "\x00" // also in a damaged file, where bbolt may not find the records to remove
		}
	}
	return nil
}

// table is a table in a transaction.
type table struct {
	w       *writeTx      // nil: read only
	records *bbolt.Bucket // nil: it has no records
	owners  *bbolt.Bucket // nil: no index, or no records
}

// read calls fn with a table on a snapshot. Data read by fn is valid until fn returns.
func (s *Store) read(ctx context.Context, t store.Table, fn func(*table)) error {
	return s.view(ctx, func(tx *bbolt.Tx) error {
		tb := table{records: tx.Bucket([]byte(t.Name))}
		if t.ByOwner {
			tb.owners = tx.Bucket([]byte(t.Name + ownersSuffix))
		}
		fn(&tb)
		return nil
	})
}

// change calls fn with a table, in a transaction shared with others.
func (s *Store) change(ctx context.Context, t store.Table, fn func(*table) error) error {
	return s.writes.do(ctx, func(w *writeTx) error {
		tb, err := w.table(t)
		if err == nil {
			err = fn(&tb)
		}
		return err
	})
}

// get returns the stored value of a key; nil if there is none.
func (t *table) get(key string) []byte { return valueIn(t.records, []byte(key)) }

// table returns a table for writing, and creates its buckets if they do not exist. If a transaction
// only creates empty buckets, it is not committed.
func (w *writeTx) table(t store.Table) (tb table, err error) {
	tb.w = w
	if tb.records, err = w.tx.CreateBucketIfNotExists([]byte(t.Name)); err == nil && t.ByOwner {
		tb.owners, err = w.tx.CreateBucketIfNotExists([]byte(t.Name + ownersSuffix))
	}
	return tb, err
}

// inState returns [store.ErrConflict] unless a record is in the state seen.
func (t *table) inState(key string, seen store.Seen) error {
	v := t.get(key)
	if v == nil && seen == (store.Seen{}) {
		return nil
	}
	if r, err := decodeRecord(v); err != nil || r.seen() != seen {
		return store.ErrConflict
	}
	return nil
}

func (t *table) put(key, owner string, value []byte) error {
	t.w.touch()
	if err := t.reindex(key, owner); err != nil {
		return err
	}
	return t.records.Put([]byte(key), value)
}

// delete removes a record, if there is one.
func (t *table) delete(key string) error {
	if t.get(key) == nil {
		return nil
	}
	t.w.touch()
	if err := t.reindex(key, ""); err != nil {
		return err
	}
	return t.records.Delete([]byte(key))
}

func (t *table) deleteAll(keys []string) error {
	for _, key := range keys {
		if err := t.delete(key); err != nil {
			return err
		}
	}
	return nil
}

// reindex moves a record in the index from the owner of the stored record to another one.
func (t *table) reindex(key, owner string) (err error) {
	if t.owners == nil {
		return nil
	}
	was, _ := decodeRecord(t.get(key)) // the index has no unreadable records
	if string(was.owner) == owner {
		return nil
	}
	if len(was.owner) > 0 {
		err = t.owners.Delete(ownerKey(string(was.owner), key))
	}
	if err == nil && owner != "" {
		err = t.owners.Put(ownerKey(owner, key), nil)
	}
	return err
}
