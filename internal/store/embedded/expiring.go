package embedded

import (
	"encoding/binary"
	"fmt"
	"time"

	"oauth-server/internal/secret"
)

// place is where an expiring record is stored: the bucket of its kind, under its digest.
type place struct {
	kind   kind
	digest secret.Digest
}

func (w *writeTx) find(p place) []byte { return w.get(p.kind, p.digest[:]) }

// set stores the value, or removes what is stored if it is nil, and changes the expiry index with it.
func (w *writeTx) set(p place, value []byte) error {
	old := w.find(p)
	before, after := expiryOf(old), expiryOf(value)
	if old != nil && (value == nil || !before.Equal(after)) {
		if err := w.delete(expiries, expiryKey(p, before)); err != nil {
			return err
		}
	}
	if value == nil {
		return w.drop(p, old)
	}
	if old == nil || !before.Equal(after) {
		if err := w.put(expiries, expiryKey(p, after), nil); err != nil {
			return err
		}
	}
	return w.put(p.kind, p.digest[:], value)
}

// drop removes a record and what else points to it, except its entry in the expiry index.
func (w *writeTx) drop(p place, value []byte) error {
	if p.kind == sessions && value != nil {
		if err := w.unindexSession(p.digest, value); err != nil {
			return err
		}
	}
	return w.delete(p.kind, p.digest[:])
}

// expiryKey is the key of the expiry index, which sorts by time: 8 bytes of milliseconds since 1970,
// 1 byte of the kind, and the digest.
func expiryKey(p place, expires time.Time) []byte {
	b := make([]byte, 0, 9+len(p.digest))
	b = binary.BigEndian.AppendUint64(b, sortable(expires))
	return append(append(b, byte(p.kind)), p.digest[:]...)
}

func parseExpiryKey(key []byte) (p place, err error) {
	if len(key) != 9+len(p.digest) || !expires(kind(key[8])) {
		return p, fmt.Errorf("%w: malformed entry %x in the expiry index", ErrCorrupt, key)
	}
	p.kind = kind(key[8])
	copy(p.digest[:], key[9:])
	return p, nil
}

// sortable maps times, also those before 1970, to numbers of the same order.
func sortable(t time.Time) uint64 { return uint64(t.UnixMilli()) ^ 1<<63 }

// expiryOf returns the expiry of a record, or the zero time for nil and for a damaged record.
func expiryOf(value []byte) time.Time {
	if value == nil {
		return time.Time{}
	}
	_, _, at := open(value)
	return at
}
