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

func ownerKey(owner, key []byte) []byte {
	return append(appendString(make([]byte, 0, 2+len(owner)+len(key)), string(owner)), key...)
}

// partRecords and partBytes bound what one transaction reads: while it lasts, writers cannot use pages
// again that they free.
const (
	partRecords = 4096
	partBytes   = 1 << 20
)

// Get implements [store.Backend].
func (s *Store) Get(ctx context.Context, t store.Table, each func(store.Record) error, keys ...string) error {
	if t.Volatile {
		return s.volatile.get(ctx, t, each, keys)
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
		return s.volatile.list(ctx, t, q, each)
	}
	l := newListing(t, q)
	for !l.done {
		l.part.reset()
		err := s.view(ctx, func(tx *bolt.Tx) error {
			l.read(tx)
			return nil
		})
		if err == nil {
			err = l.part.each(each)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// part is some records, copied so that they outlive the transaction.
type part struct {
	records []store.Record
	buffer  []byte // of their values
	visited int
}

func (p *part) reset() { p.records, p.buffer, p.visited = p.records[:0], p.buffer[:0], 0 }

func (p *part) full() bool { return p.visited >= partRecords || len(p.buffer) >= partBytes }

// take adds a record, which decodeRecord has returned.
func (p *part) take(key []byte, r *stored, err error) {
	n := len(p.buffer)
	p.buffer = append(p.buffer, r.value...)
	p.records = append(p.records, r.record(string(key), p.buffer[n:len(p.buffer):len(p.buffer)], err))
}

func (p *part) each(fn func(store.Record) error) error {
	for i := range p.records {
		if err := fn(p.records[i]); err != nil {
			return err
		}
	}
	return nil
}

// listing is a List under way.
type listing struct {
	part   part
	table  store.Table
	query  store.Query
	from   []byte // the key to continue with
	prefix []byte // of the keys
	owner  []byte // which records match; nil: all
	since  int64  // as owner
	left   int    // how many more may be returned; negative: all
	done   bool
}

// changedOverlap is more than a write takes from its time to its commit, and than clocks are set back by.
const changedOverlap = 10 * time.Second

func newListing(t store.Table, q store.Query) *listing {
	l := &listing{table: t, query: q, prefix: []byte(q.Prefix), left: q.Limit}
	if q.Limit == 0 {
		l.left = -1
	}
	if q.Owner != "" {
		l.owner = []byte(q.Owner)
	}
	if !q.ChangedSince.IsZero() {
		l.since = q.ChangedSince.Add(-changedOverlap).UnixMilli()
	}
	if l.indexed() {
		l.prefix = ownerKey(l.owner, nil)
	}
	l.from = l.prefix
	if q.After != "" {
		after := append([]byte(q.After), 0)
		if l.indexed() {
			after = append(bytes.Clone(l.prefix), after...)
		}
		l.from = maxKey(l.from, after)
	}
	return l
}

func (l *listing) indexed() bool { return l.table.ByOwner && l.owner != nil }

func maxKey(a, b []byte) []byte {
	if bytes.Compare(a, b) < 0 {
		return b
	}
	return a
}

// read takes the next part.
func (l *listing) read(tx *bolt.Tx) {
	records := tx.Bucket([]byte(l.table.Name))
	walked := records
	if l.indexed() {
		walked = tx.Bucket(ownersOf(l.table))
	}
	if walked == nil {
		l.done = true
		return
	}
	c := walked.Cursor()
	for k, v := c.Seek(l.from); ; k, v = c.Next() {
		switch {
		case k == nil || !bytes.HasPrefix(k, l.prefix) || l.left == 0:
			l.done = true
			return
		case l.part.full():
			l.from = bytes.Clone(k)
			return
		}
		if l.indexed() {
			k = k[len(l.prefix):]
			v = records.Get(k)
		}
		l.take(k, v)
	}
}

// take adds a record if it matches. One that cannot be read is among all, but has no owner and no time.
func (l *listing) take(k, v []byte) {
	l.part.visited++
	r, err := decodeRecord(v)
	if err != nil && (l.owner != nil || l.since != 0) ||
		l.owner != nil && !bytes.Equal(r.owner, l.owner) || r.changed < l.since {
		return
	}
	l.part.take(k, &r, err)
	l.left--
}

// Put implements [store.Backend].
func (s *Store) Put(ctx context.Context, t store.Table, r store.Record, seen store.Seen) (store.Seen, error) {
	if err := checkRecord(t, &r); err != nil {
		return store.Seen{}, err
	}
	r.Version, r.Nonce, r.Changed = seen.Version+1, newNonce(), time.Now()
	if t.Volatile {
		return r.Seen(), s.volatile.put(ctx, t, r, seen)
	}
	value := encodeRecord(&r)
	err := s.writes.do(ctx, func(w *writeTx) error {
		tb, err := w.table(t)
		if err != nil {
			return err
		}
		before, err := tb.inState(r.Key, seen)
		if err != nil {
			return err
		}
		return tb.put(r.Key, r.Owner, value, before)
	})
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
		r.Nonce, r.Changed = newNonce(), now
		values[i] = encodeRecord(r)
	}
	if t.Volatile {
		return s.volatile.putNewer(ctx, t, records)
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
	tb, err := w.table(t)
	if err != nil {
		return err
	}
	for i := range records {
		key := records[i].Key
		old := tb.get(key)
		if r, err := decodeRecord(old); err == nil && r.version >= records[i].Version {
			continue
		}
		if err := tb.put(key, records[i].Owner, values[i], old); err != nil {
			return err
		}
	}
	return nil
}

// Delete implements [store.Backend].
func (s *Store) Delete(ctx context.Context, t store.Table, seen *store.Seen, key string) error {
	if t.Volatile {
		return s.volatile.delete(ctx, t, seen, key)
	}
	return s.writes.do(ctx, func(w *writeTx) error {
		tb := w.tableIfThere(t)
		if seen == nil {
			return tb.delete(key)
		}
		if old, err := tb.inState(key, *seen); err != nil || old == nil {
			return err
		}
		return tb.delete(key)
	})
}

// DeleteAll implements [store.Backend].
func (s *Store) DeleteAll(ctx context.Context, t store.Table, keys ...string) error {
	if t.Volatile {
		return s.volatile.delete(ctx, t, nil, keys...)
	}
	return s.writes.do(ctx, func(w *writeTx) error {
		tb := w.tableIfThere(t)
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

// table makes the table if there is none yet.
func (w *writeTx) table(t store.Table) (tableTx, error) {
	tb := w.tableIfThere(t)
	if tb.records != nil {
		return tb, nil
	}
	var err error
	if tb.records, err = w.tx.CreateBucketIfNotExists([]byte(t.Name)); err != nil {
		return tb, fmt.Errorf("embedded: make table %s: %w", t.Name, err)
	}
	w.touched, w.dirty = true, true
	return tb, nil
}

func (w *writeTx) tableIfThere(t store.Table) tableTx {
	return tableTx{w, t, w.tx.Bucket([]byte(t.Name))}
}

// get returns what is stored; nil: nothing.
func (t *tableTx) get(key string) []byte {
	if t.records == nil {
		return nil
	}
	return t.records.Get([]byte(key))
}

// inState returns what is stored if it is in the state seen, and [store.ErrConflict] otherwise.
func (t *tableTx) inState(key string, seen store.Seen) ([]byte, error) {
	old := t.get(key)
	if old == nil {
		if seen == (store.Seen{}) {
			return nil, nil
		}
		return nil, store.ErrConflict
	}
	if r, err := decodeRecord(old); err != nil || r.seen() != seen {
		return nil, store.ErrConflict
	}
	return old, nil
}

// put replaces what is stored, before, and changes the index with it.
func (t *tableTx) put(key, owner string, value, before []byte) error {
	if t.table.ByOwner {
		r, err := decodeRecord(before)
		had := err == nil && len(r.owner) > 0
		if had && string(r.owner) != owner {
			if err := t.unindex(r.owner, key); err != nil {
				return err
			}
		}
		if owner != "" && (!had || string(r.owner) != owner) {
			if err := t.index(owner, key); err != nil {
				return err
			}
		}
	}
	t.w.touched, t.w.dirty = true, true
	if err := t.records.Put([]byte(key), value); err != nil {
		return fmt.Errorf("embedded: put into %s: %w", t.table.Name, err)
	}
	return nil
}

func (t *tableTx) index(owner, key string) error {
	t.w.touched, t.w.dirty = true, true
	owners, err := t.w.tx.CreateBucketIfNotExists(ownersOf(t.table))
	if err == nil {
		err = owners.Put(ownerKey([]byte(owner), []byte(key)), nil)
	}
	if err != nil {
		return fmt.Errorf("embedded: put into the owners of %s: %w", t.table.Name, err)
	}
	return nil
}

func (t *tableTx) unindex(owner []byte, key string) error {
	owners := t.w.tx.Bucket(ownersOf(t.table))
	if owners == nil {
		return nil
	}
	t.w.touched, t.w.dirty = true, true
	if err := owners.Delete(ownerKey(owner, []byte(key))); err != nil {
		return fmt.Errorf("embedded: delete from the owners of %s: %w", t.table.Name, err)
	}
	return nil
}

// delete removes a record, if there is one.
func (t *tableTx) delete(key string) error {
	old := t.get(key)
	if old == nil {
		return nil
	}
	if t.table.ByOwner {
		if r, err := decodeRecord(old); err == nil && len(r.owner) > 0 {
			if err := t.unindex(r.owner, key); err != nil {
				return err
			}
		}
	}
	t.w.touched, t.w.dirty = true, true
	if err := t.records.Delete([]byte(key)); err != nil {
		return fmt.Errorf("embedded: delete from %s: %w", t.table.Name, err)
	}
	return nil
}
