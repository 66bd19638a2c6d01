package embedded

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/store"
)

var _ interface {
	store.Backend
	store.Copier
	store.Sweeper
} = (*Store)(nil)

// Each table is a bucket of its name, made with its first record. The index of a table by owner is a
// bucket of its own: its keys are the owner, with its length before it, and the key of the record.

func ownersOf(t store.Table) []byte { return []byte(t.Name + ownersSuffix) }

const ownersSuffix = "/owners" // no table has such a name

func ownerKey(owner, key string) []byte { return append(appendString(nil, owner), key...) }

// Get implements [store.Backend].
func (s *Store) Get(ctx context.Context, t store.Table, each func(store.Record) error, keys ...string) error {
	if t.Volatile {
		return s.listVolatile(ctx, t, func(r *store.Record) bool { return slices.Contains(keys, r.Key) }, 0, each)
	}
	name := []byte(t.Name)
	for _, key := range keys {
		var r store.Record
		err := s.view(ctx, func(tx *bolt.Tx) error {
			if b := tx.Bucket(name); b != nil {
				if v := b.Get([]byte(key)); v != nil {
					st, err := decodeRecord(v)
					r = st.record(key, bytes.Clone(st.value), err)
				}
			}
			return nil
		})
		if err == nil && r.Key != "" {
			err = each(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// List implements [store.Backend]. It reads in parts, each in a transaction.
func (s *Store) List(ctx context.Context, t store.Table, q store.Query, each func(store.Record) error) error {
	if t.Volatile {
		return s.listVolatile(ctx, t, func(r *store.Record) bool { return matches(&q, r) }, q.Limit, each)
	}
	l := newListing(t, q)
	for more := true; more; {
		l.records, l.values, l.visited = l.records[:0], l.values[:0], 0
		err := s.view(ctx, func(tx *bolt.Tx) (err error) {
			more, err = l.read(tx)
			return err
		})
		if err != nil {
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
	table   store.Table
	query   store.Query
	indexed bool
	prefix  string // of the keys in the bucket that is walked
	from    string // the key in it to continue with
	since   int64  // 0: no matter when a record was changed
	left    int    // how many records more; negative: all

	records []store.Record // the part that was read last
	values  []byte         // of them
	visited int            // records, also those that do not match
}

func newListing(t store.Table, q store.Query) *listing {
	l := &listing{table: t, query: q, indexed: t.ByOwner && q.Owner != "", prefix: q.Prefix, left: q.Limit}
	if q.Limit == 0 {
		l.left = -1
	}
	if !q.ChangedSince.IsZero() {
		l.since = q.ChangedSince.Add(-store.ChangedOverlap).UnixMilli()
	}
	after := ""
	if q.After != "" {
		after = q.After + "\x00"
	}
	if l.indexed {
		l.prefix = string(ownerKey(q.Owner, ""))
		after = l.prefix + after
	}
	l.from = max(l.prefix, after)
	return l
}

// read takes the next part, and reports whether there is another.
func (l *listing) read(tx *bolt.Tx) (more bool, err error) {
	records := tx.Bucket([]byte(l.table.Name))
	walked := records
	if l.indexed {
		walked = tx.Bucket(ownersOf(l.table))
	}
	if walked == nil {
		return false, nil
	}
	c, prefix := walked.Cursor(), []byte(l.prefix)
	for k, v := c.Seek([]byte(l.from)); k != nil && bytes.HasPrefix(k, prefix) && l.left != 0; k, v = c.Next() {
		if l.visited == partRecords || len(l.values) >= partBytes {
			if string(k) <= l.from {
				return false, damaged("the keys of table %s are not in order", l.table.Name)
			}
			l.from = string(k)
			return true, nil
		}
		if l.indexed {
			k = k[len(prefix):]
			v = records.Get(k)
		}
		l.take(k, v)
	}
	return false, nil
}

// take adds a record if it matches. One that cannot be read is among all, but has no owner and no time.
func (l *listing) take(k, v []byte) {
	l.visited++
	r, err := decodeRecord(v)
	if err != nil && (l.query.Owner != "" || l.since != 0) ||
		l.query.Owner != "" && string(r.owner) != l.query.Owner || r.changed < l.since {
		return
	}
	n := len(l.values)
	l.values = append(l.values, r.value...)
	l.records = append(l.records, r.record(string(k), l.values[n:len(l.values):len(l.values)], err))
	l.left--
}

// Put implements [store.Backend].
func (s *Store) Put(ctx context.Context, t store.Table, r store.Record, seen store.Seen) (store.Seen, error) {
	if err := checkRecord(t, &r); err != nil {
		return store.Seen{}, err
	}
	r.Version, r.Nonce, r.Changed = seen.Version+1, store.NewNonce(), time.Now()
	var err error
	if t.Volatile {
		err = s.changeVolatile(ctx, t, func(records map[string]store.Record) error {
			if was := records[r.Key]; was.Seen() != seen {
				return store.ErrConflict
			}
			records[r.Key] = inMemory(r)
			return nil
		})
	} else {
		value := encodeRecord(&r)
		err = s.writes.do(ctx, func(w *writeTx) error {
			tb := w.table(t)
			before, err := tb.inState(r.Key, seen)
			if err != nil {
				return err
			}
			return tb.put(r.Key, r.Owner, value, before)
		})
	}
	if err != nil {
		return store.Seen{}, err
	}
	return r.Seen(), nil
}

// PutAll implements [store.Backend].
func (s *Store) PutAll(ctx context.Context, t store.Table, records []store.Record) error {
	records = slices.Clone(records)
	values, now := make([][]byte, len(records)), time.Now()
	for i := range records {
		r := &records[i]
		if err := checkRecord(t, r); err != nil {
			return err
		}
		r.Nonce, r.Changed = store.NewNonce(), now
		values[i] = encodeRecord(r)
	}
	if t.Volatile {
		return s.changeVolatile(ctx, t, func(stored map[string]store.Record) error {
			for _, r := range records {
				if was, ok := stored[r.Key]; !ok || was.Version < r.Version {
					stored[r.Key] = inMemory(r)
				}
			}
			return nil
		})
	}
	for first := 0; first < len(records); first += sweepStep {
		last := min(first+sweepStep, len(records))
		err := s.writes.do(ctx, func(w *writeTx) error { return w.putNewer(t, records[first:last], values[first:last]) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *writeTx) putNewer(t store.Table, records []store.Record, values [][]byte) error {
	tb := w.table(t)
	for i := range records {
		before := tb.get(records[i].Key)
		if r, err := decodeRecord(before); err == nil && r.version >= records[i].Version {
			continue
		}
		if err := tb.put(records[i].Key, records[i].Owner, values[i], before); err != nil {
			return err
		}
	}
	return nil
}

// Delete implements [store.Backend].
func (s *Store) Delete(ctx context.Context, t store.Table, seen *store.Seen, key string) error {
	switch {
	case seen == nil:
		return s.DeleteAll(ctx, t, key)
	case t.Volatile:
		return s.changeVolatile(ctx, t, func(records map[string]store.Record) error {
			if was := records[key]; was.Seen() != *seen {
				return store.ErrConflict
			}
			delete(records, key)
			return nil
		})
	}
	return s.writes.do(ctx, func(w *writeTx) error {
		tb := w.table(t)
		if _, err := tb.inState(key, *seen); err != nil {
			return err
		}
		return tb.delete(key)
	})
}

// DeleteAll implements [store.Backend].
func (s *Store) DeleteAll(ctx context.Context, t store.Table, keys ...string) error {
	if t.Volatile {
		return s.changeVolatile(ctx, t, func(records map[string]store.Record) error {
			for _, key := range keys {
				delete(records, key)
			}
			return nil
		})
	}
	return s.writes.do(ctx, func(w *writeTx) error {
		tb := w.table(t)
		for _, key := range keys {
			if err := tb.delete(key); err != nil {
				return err
			}
		}
		return nil
	})
}

// tableTx is a table in a write transaction.
type tableTx struct {
	w       *writeTx
	table   store.Table
	records *bolt.Bucket // nil: there is no record
}

func (w *writeTx) table(t store.Table) tableTx { return tableTx{w, t, w.tx.Bucket([]byte(t.Name))} }

// get returns what is stored; nil: nothing.
func (t *tableTx) get(key string) []byte {
	if t.records == nil {
		return nil
	}
	return t.records.Get([]byte(key))
}

// inState returns what is stored if it is in the state seen, and [store.ErrConflict] otherwise.
func (t *tableTx) inState(key string, seen store.Seen) ([]byte, error) {
	v := t.get(key)
	if v == nil && seen == (store.Seen{}) {
		return nil, nil
	}
	if r, err := decodeRecord(v); err != nil || r.seen() != seen {
		return nil, store.ErrConflict
	}
	return v, nil
}

// put replaces what is stored, before, and changes the index with it.
func (t *tableTx) put(key, owner string, value, before []byte) (err error) {
	t.w.touched, t.w.dirty = true, true
	if t.records == nil {
		t.records, err = t.w.tx.CreateBucketIfNotExists([]byte(t.table.Name))
	}
	if err == nil {
		err = t.reindex(key, before, owner)
	}
	if err == nil {
		err = t.records.Put([]byte(key), value)
	}
	return wrapTable(err, t.table)
}

// delete removes a record, if there is one.
func (t *tableTx) delete(key string) error {
	before := t.get(key)
	if before == nil {
		return nil
	}
	t.w.touched, t.w.dirty = true, true
	err := t.reindex(key, before, "")
	if err == nil {
		err = t.records.Delete([]byte(key))
	}
	return wrapTable(err, t.table)
}

// reindex gives a record another owner in the index than the one it had before.
func (t *tableTx) reindex(key string, before []byte, owner string) error {
	was, _ := decodeRecord(before) // one that cannot be read is not found by its owner
	if !t.table.ByOwner || string(was.owner) == owner {
		return nil
	}
	owners, err := t.w.tx.CreateBucketIfNotExists(ownersOf(t.table))
	if err == nil && len(was.owner) > 0 {
		err = owners.Delete(ownerKey(string(was.owner), key))
	}
	if err == nil && owner != "" {
		err = owners.Put(ownerKey(owner, key), nil)
	}
	return err
}

func wrapTable(err error, t store.Table) error {
	if err != nil {
		err = fmt.Errorf("embedded: write table %s: %w", t.Name, err)
	}
	return err
}
