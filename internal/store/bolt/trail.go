package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"time"

	"go.etcd.io/bbolt"

	"oauth-server/internal/store"
)

// trailBucket holds the entries under their numbers, 8 bytes big-endian. An entry is stored as a
// record. Its changed time is when the entry was made. Its owner is the list of references: table
// and key of each, preceded by their lengths.
const trailBucket = "trail"

// growing is how far pages are filled if each key is greater than all keys before. bbolt's default
// of half a page, which suits other orders, would leave every page half empty.
const growing = 0.9

func trailKey(number int64) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(number)) //nolint:gosec // counts from 1
}

func encodeEntry(e *store.Entry) []byte {
	var refs []byte
	for _, ref := range e.Refs {
		refs = appendString(appendString(refs, ref.Table), ref.Key)
	}
	return encodeRecord(&store.Record{Version: e.Number, Nonce: e.Nonce, Changed: e.At, Owner: string(refs), Value: e.Value})
}

// decodeEntry returns an entry. An unreadable entry has Err set.
func decodeEntry(key, value []byte) store.Entry {
	m := markOf(key, value)
	r, err := decodeRecord(value)
	e := store.Entry{Number: m.Number, Nonce: m.Nonce, At: fromMillis(r.changed), Value: bytes.Clone(r.value), Err: err}
	d := decoder{rest: r.owner}
	for len(d.rest) > 0 {
		e.Refs = append(e.Refs, store.Ref{Table: d.string(), Key: d.string()})
	}
	if d.err != nil {
		e.Err = d.err
	}
	return e
}

// markOf returns the mark of an entry, even of an unreadable one. Without an entry it returns the
// zero mark.
func markOf(key, value []byte) (m store.Mark) {
	r, _ := decodeRecord(value)
	if m.Nonce = r.nonce; len(key) == 8 {
		m.Number = int64(binary.BigEndian.Uint64(key)) //nolint:gosec // as trailKey wrote it
	}
	return m
}

func newestMark(tx *bbolt.Tx) store.Mark {
	if b := tx.Bucket([]byte(trailBucket)); b != nil {
		return markOf(b.Cursor().Last())
	}
	return store.Mark{}
}

// Append implements [store.Backend], in one transaction.
func (s *Store) Append(ctx context.Context, e store.Entry, writes ...store.Write) (store.Mark, error) {
	if err := errors.Join(checkObject(e.Value), e.Check(writes)); err != nil {
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
		if err := checkObject(r.Value); err != nil {
			return store.Mark{}, err
		}
		r.Version, r.Nonce, r.Changed = e.Number, e.Nonce, now
		values[i] = encodeRecord(&r)
	}
	entry := encodeEntry(&e)
	err := s.writes.do(ctx, func(w *writeTx) error {
		if newestMark(w.tx).Number+1 != e.Number {
			return store.ErrConflict
		}
		w.touch()
		trail, err := w.tx.CreateBucketIfNotExists([]byte(trailBucket))
		if err == nil {
			trail.FillPercent = growing
			err = trail.Put(trailKey(e.Number), entry)
		}
		for i := 0; i < len(writes) && err == nil; i++ {
			err = w.apply(&writes[i], values[i])
		}
		return err
	})
	if err != nil {
		return store.Mark{}, err
	}
	return e.Mark(), nil
}

func (w *writeTx) apply(x *store.Write, value []byte) error {
	tb, err := w.table(x.Table)
	switch {
	case err != nil:
		return err
	case x.Delete:
		return tb.delete(x.Record.Key)
	}
	if last, _ := tb.records.Cursor().Last(); string(last) < x.Record.Key {
		tb.records.FillPercent = growing // an import in the order of the keys
	}
	return tb.put(x.Record.Key, x.Record.Owner, value)
}

// Trail implements [store.Backend].
func (s *Store) Trail(ctx context.Context, after store.Mark, limit int) (entries []store.Entry, newest store.Mark, err error) {
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		trail, at, next := tx.Bucket([]byte(trailBucket)), trailKey(after.Number), trailKey(after.Number+1)
		if newest = newestMark(tx); after == newest {
			return nil
		}
		// The nonce is 0 if there is no entry, as before the first one.
		if markOf(at, valueIn(trail, at)) != after || valueIn(trail, next) == nil {
			return store.ErrMarkLost
		}
		for k, v := range from(trail, string(next)) {
			if len(entries) == limit {
				break
			}
			entries = append(entries, decodeEntry(k, v))
		}
		return nil
	})
	return entries, newest, err
}

// History implements [store.Backend]. It reads in parts, one transaction each, and stops at the
// first number without an entry.
func (s *Store) History(ctx context.Context, before int64, each func(store.Entry) error) error {
	for {
		var entries []store.Entry
		err := s.view(ctx, func(tx *bbolt.Tx) error {
			trail, last := tx.Bucket([]byte(trailBucket)), newestMark(tx).Number
			if before > 0 {
				last = min(last, before-1)
			}
			for before = last + 1; before > 1 && len(entries) < sweepStep; before-- {
				k := trailKey(before - 1)
				v := valueIn(trail, k)
				if v == nil {
					break
				}
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
	}
}

// Trim implements [store.Backend], in bounded steps.
func (s *Store) Trim(ctx context.Context, through int64) error {
	err := s.view(ctx, func(tx *bbolt.Tx) error {
		through = min(through, newestMark(tx).Number-1)
		return nil
	})
	if err != nil {
		return err
	}
	return s.deleteWhile(ctx, store.Table{Name: trailBucket}, "", func(k, v []byte) bool { return markOf(k, v).Number <= through })
}
