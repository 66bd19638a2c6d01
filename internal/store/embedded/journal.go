package embedded

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/secret"
)

// Codes, tokens, sessions and revocations are keyed by digests, so every one of
// them lies on another page of the file, and a commit of 64 grants would rewrite
// some 200 pages. Instead they are first written one after the other into a
// journal, a bucket whose keys only grow: a handful of pages. What a journal
// holds is kept in memory too, where reads look first ([recent]).
//
// There are two journals. When the one that is written to has grown to foldAt
// records, the other takes over, and with each further commit a slice of the
// full one is folded, in the order of the digests, into the buckets where
// records stay. Its neighbours share pages, and no commit takes long. When all
// of it is folded it is emptied, and is the next to take over.
//
// All of that happens in ordinary transactions, so a crash needs no repair:
// opening the file reads the journals, the older one first, and goes on.

// foldAt is how many records a journal collects. With more of them, more share
// a page when they are folded; all of them are in memory.
const foldAt = 4096

// foldStep is how many records a commit folds, beside two for each that it
// writes: so folding is done before the other journal is full.
const foldStep = 32

// journals are the two, in no order: the older is the one with the lower keys.
var journals = [2][]byte{[]byte("journal_a"), []byte("journal_b")}

// place is where an expiring record is found: its kind and its digest.
type place struct {
	kind   kind
	digest secret.Digest
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.kind, q.kind), bytes.Compare(p.digest[:], q.digest[:]))
}

// entry is a record as it stands in a journal: kind, digest, value. A removed
// one has no value; no other is empty.
func (p place) entry(value []byte) []byte {
	b := make([]byte, 0, 1+len(p.digest)+len(value))
	b = append(append(b, byte(p.kind)), p.digest[:]...)
	return append(b, value...)
}

func parseEntry(entry []byte) (p place, value []byte, err error) {
	if len(entry) < 1+len(p.digest) || !expires(kind(entry[0])) {
		return p, nil, fmt.Errorf("%w: an entry of the journal makes no sense", ErrCorrupt)
	}
	p.kind = kind(entry[0])
	rest := entry[1+copy(p.digest[:], entry[1:]):]
	if len(rest) == 0 {
		return p, nil, nil
	}
	return p, rest, nil
}

// find returns the value at a place, as this transaction sees it; nil for none.
func (w *writeTx) find(p place) []byte {
	if value, ok := w.staged[p]; ok {
		return value
	}
	if value, ok := w.recent.get(p); ok {
		return value
	}
	return w.get(p.kind, p.digest[:])
}

// stage writes the value at a place; nil removes it. The value must not be
// changed afterwards.
func (w *writeTx) stage(p place, value []byte) {
	w.touched, w.dirty = true, true
	w.staged[p] = value
}

// writeStaged puts what was staged into the journal, and folds a slice of the
// other one.
func (w *writeTx) writeStaged() error {
	b := w.tx.Bucket(journals[w.recent.active])
	b.FillPercent = 1 // its keys only grow
	for p, value := range w.staged {
		// The numbers go on from one journal to the other.
		n, err := w.tx.Bucket(buckets[settings]).NextSequence()
		if err != nil {
			return fmt.Errorf("embedded: number the journal: %w", err)
		}
		if err := b.Put(binary.BigEndian.AppendUint64(nil, n), p.entry(value)); err != nil {
			return fmt.Errorf("embedded: put into the journal: %w", err)
		}
	}
	return w.fold(foldStep + 2*len(w.staged))
}

// fold moves up to n records of the full journal, if there is one, to where
// they stay, and empties it when that was the last.
func (w *writeTx) fold(n int) error {
	if w.recent.full == nil {
		return nil
	}
	rest := w.recent.order[w.recent.folded:]
	w.folded = min(n, len(rest))
	for _, p := range rest[:w.folded] {
		if err := w.settle(p, w.recent.full[p]); err != nil {
			return err
		}
	}
	if w.folded < len(rest) {
		return nil
	}
	name := journals[1-w.recent.active]
	if err := w.tx.DeleteBucket(name); err != nil {
		return fmt.Errorf("embedded: empty a journal: %w", err)
	}
	if _, err := w.tx.CreateBucket(name); err != nil {
		return fmt.Errorf("embedded: begin a journal: %w", err)
	}
	return nil
}

// settle writes one record where it stays, and keeps the expiry index in step.
func (w *writeTx) settle(p place, value []byte) error {
	key := p.digest[:]
	old := w.get(p.kind, key)
	before, after := expiryOf(old), expiryOf(value)
	if old != nil && (value == nil || !before.Equal(after)) {
		if err := w.delete(expiries, expiryKey(p, before)); err != nil {
			return err
		}
	}
	if value == nil {
		return w.delete(p.kind, key)
	}
	if old == nil || !before.Equal(after) {
		if err := w.put(expiries, expiryKey(p, after), nil); err != nil {
			return err
		}
	}
	return w.put(p.kind, key, value)
}

// expiryKey is an entry of the expiry index, in the order of time: 8 bytes of
// milliseconds since 1970, one of the kind, and the digest.
func expiryKey(p place, expires time.Time) []byte {
	b := make([]byte, 0, 9+len(p.digest))
	b = binary.BigEndian.AppendUint64(b, sortable(expires))
	return append(append(b, byte(p.kind)), p.digest[:]...)
}

func parseExpiryKey(key []byte) (p place, err error) {
	if len(key) != 9+len(p.digest) || !expires(kind(key[8])) {
		return p, fmt.Errorf("%w: an entry of the expiry index makes no sense", ErrCorrupt)
	}
	p.kind = kind(key[8])
	copy(p.digest[:], key[9:])
	return p, nil
}

// sortable maps times, also those before 1970, to numbers of the same order.
func sortable(t time.Time) uint64 { return uint64(t.UnixMilli()) ^ 1<<63 }

// expiryOf is the expiry of a record; the zero time of none, or of a damaged one.
func expiryOf(value []byte) time.Time {
	if value == nil {
		return time.Time{}
	}
	_, _, at := open(value)
	return at
}

// firstKey returns the first key of a journal, nil if it is empty.
func firstKey(tx *bolt.Tx, name []byte) []byte {
	k, _ := tx.Bucket(name).Cursor().First()
	return k
}
