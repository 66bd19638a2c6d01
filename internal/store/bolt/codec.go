package bolt

import (
	"encoding/binary"
	"fmt"

	"oauth-server/internal/store"
)

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decoder reads numbers and strings one after the other. After the first error, a [store.ErrUnreadable], it
// returns zero values, and nothing is left.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: "+format, append([]any{store.ErrUnreadable}, args...)...)
		d.rest = nil
	}
}

func (d *decoder) bytes(n uint64) []byte {
	if d.err != nil || n > uint64(len(d.rest)) {
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

// finish returns the first error, which may be that something is left.
func (d *decoder) finish() error {
	if len(d.rest) > 0 {
		d.fail("it has %d bytes too many", len(d.rest))
	}
	return d.err
}
