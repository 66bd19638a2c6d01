package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/store"
)

// trailBucket holds the entries under their numbers, 8 bytes big-endian. An entry is stored as
//
//	byte 0     recordFormat
//	8 bytes    nonce, big-endian
//	varint     when it was made, milliseconds since 1970
//	uvarint    how many records it refers to, and each: table and key, with their lengths
//
// and the value, to the end.
var trailBucket = []byte("trail")

func trailKey(number int64) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(number)) //nolint:gosec // counts from 1
}

func encodeEntry(e *store.Entry) []byte {
	b := make([]byte, 0, 64+len(e.Value))
	b = append(b, recordFormat)
	b = binary.BigEndian.AppendUint64(b, uint64(e.Nonce)) //nolint:gosec // undone by decodeEntry
	b = appendMillis(b, e.At)
	b = binary.AppendUvarint(b, uint64(len(e.Refs)))
	for _, ref := range e.Refs {
		b = appendString(appendString(b, ref.Table), ref.Key)
	}
	return append(b, e.Value...)
}

// decodeEntry returns an entry; one that cannot be read has Err set.
func decodeEntry(key, b []byte) (e store.Entry) {
	d := decoder{rest: b}
	if f := d.bytes(1); d.err == nil && f[0] != recordFormat {
		d.fail("an entry of format %d", f[0])
	}
	e.Nonce, e.At = d.nonce(), fromMillis(d.varint())
	for n := d.length(); n > 0 && d.err == nil; n-- {
		e.Refs = append(e.Refs, store.Ref{Table: d.string(), Key: d.string()})
	}
	e.Value = append([]byte(nil), d.rest...)
	if d.err != nil {
		e = store.Entry{Err: fmt.Errorf("%w: %w", store.ErrUnreadable, d.err)}
	}
	if len(key) == 8 {
		e.Number = int64(binary.BigEndian.Uint64(key)) //nolint:gosec // as trailKey wrote it
	}
	return e
}

// lastEntry returns the newest entry; the zero entry if there is none.
func lastEntry(trail *bolt.Bucket) (e store.Entry) {
	if trail != nil {
		if k, v := trail.Cursor().Last(); k != nil {
			return decodeEntry(k, v)
		}
	}
	return e
}

// Append implements [store.Backend], in one transaction.
func (s *Store) Append(ctx context.Context, e store.Entry, writes ...store.Write) (store.Mark, error) {
	if !isObject(e.Value) {
		return store.Mark{}, fmt.Errorf("embedded: trail: the value is no JSON object")
	}
	if err := e.Check(writes); err != nil {
		return store.Mark{}, err
	}
	e.Nonce, e.Refs = store.NewNonce(), make([]store.Ref, len(writes))
	values, now := make([][]byte, len(writes)), time.Now()
	for i, x := range writes {
		r := x.Record
		e.Refs[i] = store.Ref{Table: x.Table.Name, Key: r.Key}
		if x.Delete {
			continue
		}
		if err := checkRecord(x.Table, &r); err != nil {
			return store.Mark{}, err
		}
		r.Version, r.Nonce, r.Changed = e.Number, e.Nonce, now
		values[i] = encodeRecord(&r)
	}
	entry := encodeEntry(&e)
	err := s.writes.do(ctx, func(w *writeTx) error {
		if newest := lastEntry(w.tx.Bucket(trailBucket)); newest.Number+1 != e.Number {
			return store.ErrConflict
		}
		w.touched, w.dirty = true, true
		trail, err := w.tx.CreateBucketIfNotExists(trailBucket)
		if err == nil {
			trail.FillPercent = 0.9 // its keys grow
			err = trail.Put(trailKey(e.Number), entry)
		}
		for i := 0; i < len(writes) && err == nil; i++ {
			r, tb := &writes[i].Record, w.table(writes[i].Table)
			if writes[i].Delete {
				err = tb.delete(r.Key)
			} else {
				err = tb.put(r.Key, r.Owner, values[i], tb.get(r.Key))
			}
		}
		return err
	})
	if err != nil {
		return store.Mark{}, err
	}
	return e.Mark(), nil
}

// Trail implements [store.Backend].
func (s *Store) Trail(ctx context.Context, after store.Mark, limit int) (entries []store.Entry, newest store.Mark, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		trail := tx.Bucket(trailBucket)
		last := lastEntry(trail)
		newest = last.Mark()
		if after == newest {
			return nil
		}
		if trail == nil || after.Number >= last.Number {
			return store.ErrMarkLost
		}
		c := trail.Cursor()
		k, v := c.Seek(trailKey(max(after.Number, 1)))
		first := decodeEntry(k, v)
		switch {
		case after == store.Mark{} && first.Number == 1:
		case first.Mark() == after:
			k, v = c.Next()
		default:
			return store.ErrMarkLost
		}
		for ; k != nil && len(entries) < limit; k, v = c.Next() {
			entries = append(entries, decodeEntry(k, v))
		}
		return nil
	})
	return entries, newest, err
}

// History implements [store.Backend]. It reads in parts, each in a transaction.
func (s *Store) History(ctx context.Context, before int64, each func(store.Entry) error) error {
	for {
		var entries []store.Entry
		err := s.view(ctx, func(tx *bolt.Tx) error {
			trail := tx.Bucket(trailBucket)
			if trail == nil {
				return nil
			}
			c := trail.Cursor()
			for k, v := entryBefore(c, before); k != nil && len(entries) < sweepStep; k, v = c.Prev() {
				entries = append(entries, decodeEntry(k, v))
			}
			return nil
		})
		if err != nil || len(entries) == 0 {
			return err
		}
		for _, e := range entries {
			if err := each(e); err != nil {
				return err
			}
		}
		oldest := entries[len(entries)-1].Number
		switch {
		case oldest <= 1:
			return nil
		case before > 0 && oldest >= before:
			return damaged("the numbers of the trail are not in order")
		}
		before = oldest
	}
}

// entryBefore moves to the newest entry before a number, or to the newest of all for 0.
func entryBefore(c *bolt.Cursor, number int64) (key, value []byte) {
	if number > 0 {
		if k, _ := c.Seek(trailKey(number)); k != nil {
			return c.Prev()
		}
	}
	return c.Last()
}

// Trim implements [store.Backend], in bounded steps.
func (s *Store) Trim(ctx context.Context, through int64) error {
	for more := true; more; {
		err := s.writes.do(ctx, func(w *writeTx) error {
			trail := w.tx.Bucket(trailBucket)
			end := min(through, lastEntry(trail).Number-1)
			var last []byte
			for range sweepStep {
				if more = trail != nil && end > 0; !more {
					return nil
				}
				k, v := trail.Cursor().First()
				if more = decodeEntry(k, v).Number <= end; !more {
					return nil
				}
				if bytes.Equal(k, last) {
					return damaged("entry %x of the trail cannot be removed", k)
				}
				last = bytes.Clone(k)
				w.touched, w.dirty = true, true
				if err := trail.Delete(k); err != nil {
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
