package bolt

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
//	varint     length of the owner, and the owner
//
// and the value, to the end. An entry of the trail has the same form, and so has a counter; see trail.go and
// counters.go.
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
	b = binary.AppendVarint(binary.AppendVarint(b, millis(r.Expires)), millis(r.Changed))
	return append(appendString(b, r.Owner), r.Value...)
}

// decodeRecord reads all but the value. Errors: [store.ErrUnreadable].
func decodeRecord(b []byte) (r stored, err error) {
	d := decoder{rest: b}
	if f := d.bytes(1); d.err == nil && f[0] != recordFormat {
		d.fail(fmt.Sprintf("it has format %d", f[0]))
	}
	r.version = d.varint()
	if nonce := d.bytes(8); d.err == nil {
		r.nonce = int64(binary.BigEndian.Uint64(nonce)) //nolint:gosec // as it was written
	}
	r.expires, r.changed = d.varint(), d.varint()
	r.owner, r.value = d.bytes(d.varint()), d.rest
	if d.err != nil {
		return stored{}, d.err
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

// checkObject returns an error for a value that MongoDB could not store. It is cheap: the caller
// has already encoded the value.
func checkObject(value []byte) error {
	if n := len(value); n < 2 || value[0] != '{' || value[n-1] != '}' {
		return fmt.Errorf("bolt: the value is not a JSON object")
	}
	return nil
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendVarint(b, int64(len(s))), s...)
}

// decoder reads numbers and strings one after the other. After the first error, a
// [store.ErrUnreadable], it returns zero values and has no data left.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) fail(why string) {
	if d.err == nil {
		d.err, d.rest = fmt.Errorf("%w: %s", store.ErrUnreadable, why), nil
	}
}

func (d *decoder) bytes(n int64) []byte {
	if d.err != nil || n < 0 || n > int64(len(d.rest)) {
		d.fail("it ends early")
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) varint() int64 {
	n, size := binary.Varint(d.rest)
	if size <= 0 {
		d.fail("a number is missing")
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

func (d *decoder) string() string { return string(d.bytes(d.varint())) }

// finish returns the first error. Trailing data is an error too.
func (d *decoder) finish() error {
	if len(d.rest) > 0 {
		d.fail(fmt.Sprintf("it has %d extra bytes", len(d.rest)))
	}
	return d.err
}
