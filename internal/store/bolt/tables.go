package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"oauth-server/internal/store"
)

// rows are the records of a table, encoded: a bucket, which is made at the first write, or memory. The index
// of a table by owner is a bucket of its own: its keys are the owner, with its length before it, and the
// key of the record.
type rows interface {
	Get(key []byte) []byte
	Put(key, value []byte) error
	Delete(key []byte) error
}

// memory holds a volatile table: no other process can have the file open. A nil one is empty.
type memory map[string][]byte

// Get implements [rows].
func (m memory) Get(key []byte) []byte { return m[string(key)] }

// Put implements [rows].
func (m memory) Put(key, value []byte) error { m[string(key)] = value; return nil }

// Delete implements [rows].
func (m memory) Delete(key []byte) error { delete(m, string(key)); return nil }

const ownersSuffix = "/owners" // no table has such a name

func ownerKey(owner, key string) []byte { return append(appendString(nil, owner), key...) }

// bucketOf returns a bucket for reading.
func bucketOf(tx *bbolt.Tx, name string) rows {
	if b := tx.Bucket([]byte(name)); b != nil {
		return b
	}
	return memory(nil)
}

// from returns the rows from a key on, in order. In a damaged file, where bbolt may follow pages in a circle,
// they are not in order: it panics then, which is [ErrCorrupt] for the caller of the store.
func from(r rows, key string) iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		switch r := r.(type) {
		case memory:
			for _, k := range slices.Sorted(maps.Keys(r)) {
				if k >= key && !yield([]byte(k), r[k]) {
					return
				}
			}
		case *bbolt.Bucket:
			c, last := r.Cursor(), []byte(nil)
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
}

// Get implements [store.Backend].
func (s *Store) Get(ctx context.Context, t store.Table, each func(store.Record) error, keys ...string) error {
	var found []store.Record
	err := s.read(ctx, t, func(tb *table) {
		for _, key := range keys {
			if v := tb.records.Get([]byte(key)); v != nil {
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

// List implements [store.Backend]. It reads in parts, each in a transaction.
func (s *Store) List(ctx context.Context, t store.Table, q store.Query, each func(store.Record) error) error {
	l := newListing(t, q)
	for more := true; more; {
		if err := s.read(ctx, t, func(tb *table) { more = l.read(tb) }); err != nil {
			return err
		}
		for i := range l.records {
			if err := each(l.records[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// partRecords and partBytes bound what one transaction reads: while it lasts, writers cannot use pages
// again that they free.
const (
	partRecords = 4096
	partBytes   = 1 << 20
)

// listing is a List under way.
type listing struct {
	query   store.Query
	indexed bool
	prefix  string // of the keys in the bucket that is walked
	from    string // the key in it to continue with
	since   int64  // 0: no matter when a record was changed
	found   int

	records []store.Record // the part that was read last
	values  []byte         // of them
}

func newListing(t store.Table, q store.Query) *listing {
	l := &listing{query: q, indexed: t.ByOwner && !t.Volatile && q.Owner != "", prefix: q.Prefix}
	if l.indexed {
		l.prefix = string(ownerKey(q.Owner, ""))
		l.from = l.prefix
	}
	l.from = max(l.prefix, l.from+q.After+"\x00") // no key is empty
	if !q.ChangedSince.IsZero() {
		l.since = q.ChangedSince.Add(-store.ChangedOverlap).UnixMilli()
	}
	return l
}

// read takes the next part, and reports whether there is another.
func (l *listing) read(tb *table) (more bool) {
	l.records, l.values = l.records[:0], l.values[:0]
	walked := tb.records
	if l.indexed {
		walked = tb.owners
	}
	visited := 0
	for k, v := range from(walked, l.from) {
		switch {
		case !strings.HasPrefix(string(k), l.prefix) || l.query.Limit > 0 && l.found == l.query.Limit:
			return false
		case visited == partRecords || len(l.values) >= partBytes:
			l.from = string(k)
			return true
		case l.indexed:
			k = k[len(l.prefix):]
			v = tb.records.Get(k)
		}
		visited++
		l.take(k, v)
	}
	return false
}

// take adds a record if it matches. One that cannot be read is among all, but has no owner and no time.
func (l *listing) take(k, v []byte) {
	r, err := decodeRecord(v)
	if l.query.Owner != "" && string(r.owner) != l.query.Owner || r.changed < l.since {
		return
	}
	n := len(l.values)
	l.values = append(l.values, r.value...)
	l.records = append(l.records, r.record(string(k), l.values[n:len(l.values):len(l.values)], err))
	l.found++
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
	values, now := make([][]byte, len(records)), time.Now()
	for i, r := range records {
		if err := errors.Join(checkObject(r.Value), r.Check()); err != nil {
			return err
		}
		r.Nonce, r.Changed = store.NewNonce(), now
		values[i] = encodeRecord(&r)
	}
	for first := 0; first < len(records); first += sweepStep {
		err := s.change(ctx, t, func(tb *table) error {
			for i := first; i < min(first+sweepStep, len(records)); i++ {
				r := &records[i]
				if was, err := decodeRecord(tb.records.Get([]byte(r.Key))); err == nil && was.version >= r.Version {
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

// deleteWhile removes the records of a table from a key on, as long as they are due, in bounded steps.
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
			first = keys[sweepStep-1] + "\x00" // also in a damaged file, where bbolt may not find what it is to remove
		}
	}
	return nil
}

// table is a table in a transaction.
type table struct {
	w       *writeTx // nil: it is only read
	records rows
	owners  rows // nil: there is no index
}

// read calls fn with a table on a snapshot. What fn reads is valid until it returns.
func (s *Store) read(ctx context.Context, t store.Table, fn func(*table)) error {
	if t.Volatile {
		return s.change(ctx, t, func(tb *table) error { fn(tb); return nil })
	}
	return s.view(ctx, func(tx *bbolt.Tx) error {
		tb := table{records: bucketOf(tx, t.Name)}
		if t.ByOwner {
			tb.owners = bucketOf(tx, t.Name+ownersSuffix)
		}
		fn(&tb)
		return nil
	})
}

// change calls fn with a table, in a transaction that others share.
func (s *Store) change(ctx context.Context, t store.Table, fn func(*table) error) error {
	if !t.Volatile {
		return s.writes.do(ctx, func(w *writeTx) error {
			tb, err := w.table(t)
			if err == nil {
				err = fn(&tb)
			}
			return err
		})
	}
	if err := s.usable(ctx); err != nil {
		return err
	}
	s.volatile.Lock()
	defer s.volatile.Unlock()
	if s.inMemory[t.Name] == nil {
		s.inMemory[t.Name] = memory{}
	}
	return fn(&table{w: &writeTx{}, records: s.inMemory[t.Name]})
}

// table returns a table, and makes its buckets if they are not there. They are no change of their own.
func (w *writeTx) table(t store.Table) (tb table, err error) {
	tb.w = w
	if tb.records, err = w.tx.CreateBucketIfNotExists([]byte(t.Name)); err == nil && t.ByOwner {
		tb.owners, err = w.tx.CreateBucketIfNotExists([]byte(t.Name + ownersSuffix))
	}
	return tb, err
}

// inState returns [store.ErrConflict] unless a record is in the state seen.
func (t *table) inState(key string, seen store.Seen) error {
	v := t.records.Get([]byte(key))
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
	if t.records.Get([]byte(key)) == nil {
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

// reindex gives a record another owner in the index than the stored one has.
func (t *table) reindex(key, owner string) (err error) {
	if t.owners == nil {
		return nil
	}
	was, _ := decodeRecord(t.records.Get([]byte(key))) // one that cannot be read is not found by its owner
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
