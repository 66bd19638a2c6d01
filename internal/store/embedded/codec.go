package embedded

import (
	"encoding/binary"
	"fmt"
	"time"

	"oauth-server/internal/secret"
)

// Expiring records and counters have a compact binary form, because one is written in every code and
// refresh grant. All begin alike, so that a claim and the sweep need no decoder:
//
//	byte 0     recordVersion
//	byte 1     flags
//	byte 2-9   expiry, milliseconds since 1970, big-endian
//
// Then follow the fields in their order: times as 8 bytes, strings and lists with a length before them.
const (
	recordVersion = 1
	headerSize    = 10

	flagClaimed = 1 << 0
)

func header(flags byte, expires time.Time) []byte {
	b := make([]byte, 2, 256)
	b[0], b[1] = recordVersion, flags
	return appendTime(b, expires)
}

func flags(claimed bool) byte {
	if claimed {
		return flagClaimed
	}
	return 0
}

func appendTime(b []byte, t time.Time) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(t.UnixMilli()))
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendStrings(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

func appendStamp(b []byte, s secret.Stamp) []byte {
	return binary.AppendUvarint(appendString(b, s.ID), uint64(s.Count)) //nolint:gosec // undone by stamp
}

// decoder reads what the functions above wrote. After the first error it returns zero values, and
// finish returns that error.
type decoder struct {
	rest []byte
	err  error
}

// open checks the header and returns the decoder of what follows it.
func open(value []byte) (d *decoder, flags byte, expires time.Time) {
	d = &decoder{rest: value}
	if v := d.bytes(2); d.err == nil {
		if v[0] != recordVersion {
			d.fail("a record of version %d", v[0])
		}
		flags = v[1]
	}
	return d, flags, d.time()
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

func (d *decoder) strings() []string {
	n := d.length()
	if n > uint64(len(d.rest)) { // each has a byte at least
		d.fail("a list of %d ends early", n)
	}
	if d.err != nil || n == 0 {
		return nil
	}
	list := make([]string, 0, n)
	for range n {
		list = append(list, d.string())
	}
	return list
}

// stamp returns the zero stamp at the end of a record of an earlier release, which has none.
func (d *decoder) stamp() secret.Stamp {
	if d.err != nil || len(d.rest) == 0 {
		return secret.Stamp{}
	}
	return secret.Stamp{ID: d.string(), Count: int64(d.length())} //nolint:gosec // as appendStamp wrote it
}

func (d *decoder) finish() error {
	if len(d.rest) > 0 {
		d.fail("%d bytes too many in a record", len(d.rest))
	}
	return d.err
}
