package embedded

import (
	"encoding/binary"
	"fmt"
	"time"

	"oauth-server/internal/store"
)

// A record of a table is stored under its key as
//
//	byte 0     recordFormat
//	varint     version
//	8 bytes    nonce, big-endian
//	varint     expires, milliseconds since 1970; 0: never
//	varint     changed, the same
//	uvarint    length of the owner, and the owner
//
// and the value, to the end. An entry of the trail begins alike; see trail.go.
const recordFormat = 2

// stored is a record as it is in the file. Its slices are valid until the transaction ends.
type stored struct {
	version, nonce, expires, changed int64
	owner, value                     []byte
}

func encodeRecord(r *store.Record) []byte {
	b := make([]byte, 0, 40+len(r.Owner)+len(r.Value))
	b = append(b, recordFormat)
	b = binary.AppendVarint(b, r.Version)
	b = binary.BigEndian.AppendUint64(b, uint64(r.Nonce)) //nolint:gosec // undone by decodeRecord
	b = appendMillis(appendMillis(b, r.Expires), r.Changed)
	return append(appendString(b, r.Owner), r.Value...)
}

// decodeRecord reads all but the value. Errors: [store.ErrUnreadable].
func decodeRecord(b []byte) (r stored, err error) {
	d := decoder{rest: b}
	if f := d.bytes(1); d.err == nil && f[0] != recordFormat {
		d.fail("a record of format %d", f[0])
	}
	r.version, r.nonce = d.varint(), d.nonce()
	r.expires, r.changed = d.varint(), d.varint()
	r.owner, r.value = d.bytes(d.length()), d.rest
	if d.err != nil {
		return stored{}, fmt.Errorf("%w: %w", store.ErrUnreadable, d.err)
	}
	return r, nil
}

// record returns the record with a value that the caller has copied, so that it outlives the transaction.
func (r *stored) record(key string, value []byte, err error) store.Record {
	return store.Record{
		Key: key, Value: value, Owner: string(r.owner), Expires: fromMillis(r.expires),
		Version: r.version, Nonce: r.nonce, Changed: fromMillis(r.changed), Err: err,
	}
}

func (r *stored) seen() store.Seen { return store.Seen{Version: r.version, Nonce: r.nonce} }

func (d *decoder) nonce() int64 {
	b := d.bytes(8)
	if d.err != nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b)) //nolint:gosec // as it was written
}

func appendMillis(b []byte, t time.Time) []byte { return binary.AppendVarint(b, millis(t)) }

// millis returns 0 for the zero time. fromMillis is its inverse.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// checkRecord returns an error for a record that MongoDB could not store either.
func checkRecord(t store.Table, r *store.Record) error {
	if !isObject(r.Value) {
		return fmt.Errorf("embedded: table %s: the value is no JSON object", t.Name)
	}
	return r.Check()
}

// isObject is a check that costs nothing: the caller has encoded the value.
func isObject(value []byte) bool {
	n := len(value)
	return n >= 2 && value[0] == '{' && value[n-1] == '}'
}
