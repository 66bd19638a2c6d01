package embedded

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Counters have a compact binary form, which begins so:
//
//	byte 0     recordVersion
//	byte 1     0
//	byte 2-9   expiry, milliseconds since 1970, big-endian
//
// Then follow the fields in their order: times as 8 bytes, strings and lists with a length before them.
const (
	recordVersion = 1
	headerSize    = 10
)

func header(expires time.Time) []byte {
	b := make([]byte, 2, 256)
	b[0] = recordVersion
	return appendTime(b, expires)
}

func appendTime(b []byte, t time.Time) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(t.UnixMilli()))
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decoder reads what the functions above wrote. After the first error it returns zero values, and
// finish returns that error.
type decoder struct {
	rest []byte
	err  error
}

// open checks the header and returns the decoder of what follows it.
func open(value []byte) (d *decoder, expires time.Time) {
	d = &decoder{rest: value}
	if v := d.bytes(2); d.err == nil && v[0] != recordVersion {
		d.fail("a record of version %d", v[0])
	}
	return d, d.time()
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
		d.rest = nil
	}
}

func (d *decoder) bytes(n uint64) []byte {
	if d.err != nil || n > uint64(len(d.rest)) {
		d.fail("a record ends early")
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

// time refuses years that JSON cannot show: no release has written one.
func (d *decoder) time() time.Time {
	b := d.bytes(8)
	if d.err != nil {
		return time.Time{}
	}
	t := time.UnixMilli(int64(binary.BigEndian.Uint64(b))).UTC() //nolint:gosec // as appendTime wrote it
	if year := t.Year(); year < 0 || year > 9999 {
		d.fail("a time in the year %d", year)
		return time.Time{}
	}
	return t
}

func (d *decoder) length() uint64 {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 {
		d.fail("a length is missing")
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

func (d *decoder) string() string { return string(d.bytes(d.length())) }

func (d *decoder) finish() error {
	if len(d.rest) > 0 {
		d.fail("%d bytes too many in a record", len(d.rest))
	}
	return d.err
}
