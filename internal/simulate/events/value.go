package events

import (
	"bytes"
	"hash/maphash"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// kind is the notation of a value.
type kind uint8

const (
	absent  kind = iota // also null
	plain               // text without escapes
	escaped             // a JSON string, with its quotes
	quoted              // text with the escapes of Go, which slog, Apache and nginx use
	slashed             // text with a backslash before quotes
	doubled             // text with doubled quotes
	number
	truth     // true or false
	composite // an object or an array
)

// value is a field of a line. It is valid until the next line.
type value struct {
	kind kind
	raw  []byte
}

// present reports whether the field exists and is not empty.
func (v value) present() bool {
	return v.kind != absent && v.kind != composite && len(v.raw) > 0
}

// bytes returns the text of the value. It decodes escapes into buf, which it may grow.
func (v value) bytes(buf *[]byte) []byte {
	switch v.kind {
	case plain, truth:
		return v.raw
	case number:
		return v.number(buf)
	case escaped:
		return unescape(buf, v.raw)
	case quoted:
		if bytes.IndexByte(v.raw, '\\') < 0 {
			return v.raw
		}
		*buf = unquote((*buf)[:0], string(v.raw))
		return *buf
	case slashed:
		return bytes.ReplaceAll(v.raw, []byte(`\"`), []byte(`"`))
	case doubled:
		return bytes.ReplaceAll(v.raw, []byte(`""`), []byte(`"`))
	case absent, composite:
	}
	return nil
}

// number returns a number unchanged, except that a whole number loses the fraction or the exponent
// of a float: the id 4622.0 is the id 4622.
func (v value) number(buf *[]byte) []byte {
	if !bytes.ContainsAny(v.raw, ".eE") {
		return v.raw
	}
	n, err := strconv.ParseFloat(string(v.raw), 64)
	if err != nil || n != math.Trunc(n) || math.Abs(n) >= 1<<53 {
		return v.raw
	}
	*buf = strconv.AppendInt((*buf)[:0], int64(n), 10)
	return *buf
}

// is reports whether the value equals text, which must not need escapes.
func (v value) is(text string) bool { return string(v.raw) == text && v.kind != composite }

// unescape decodes a JSON string into buf. A string that is not valid is decoded as far as possible.
func unescape(buf *[]byte, text []byte) []byte {
	out, err := jsontext.AppendUnquote((*buf)[:0], text)
	if err != nil {
		out = unquote((*buf)[:0], string(text[1:len(text)-1]))
	}
	*buf = out
	return out
}

// unquote decodes the escapes of Go. Invalid escapes stay unchanged.
func unquote(to []byte, text string) []byte {
	for text != "" {
		c, multibyte, rest, err := strconv.UnquoteChar(text, '"')
		switch {
		case err != nil:
			to, rest = append(to, text[0]), text[1:]
		case multibyte:
			to = utf8.AppendRune(to, c)
		default:
			to = append(to, byte(c)) //nolint:gosec // G115: it is a byte
		}
		text = rest
	}
	return to
}

// slots is how many strings are kept.
const slots = 1 << 16

var seed = maphash.MakeSeed()

// stringTable keeps one copy of frequent strings: the IDs of clients and users. It is a table of a
// fixed size. A new string replaces an old one, so the table stays small whatever a log contains.
type stringTable struct {
	seen  [slots]string
	addrs [slots / 8]struct {
		text string
		addr netip.Addr
	}
}

// of converts the bytes to a string.
func (t *stringTable) of(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	slot := &t.seen[maphash.Bytes(seed, b)%slots]
	if *slot == string(b) { // compares without a copy
		return *slot
	}
	*slot = string(b)
	return *slot
}

// addr returns the first address in the bytes, which may be a list, with or without ports. It
// returns zero if there is no address.
func (t *stringTable) addr(b []byte) netip.Addr {
	if len(b) == 0 {
		return netip.Addr{}
	}
	slot := &t.addrs[maphash.Bytes(seed, b)%(slots/8)]
	if slot.text == string(b) {
		return slot.addr
	}
	slot.text = string(b)
	slot.addr = parseAddr(slot.text)
	return slot.addr
}

func parseAddr(text string) netip.Addr {
	text, _, _ = strings.Cut(text, ",")
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "["); ok && strings.HasSuffix(inner, "]") {
		text = inner[:len(inner)-1]
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		ap, err := netip.ParseAddrPort(text)
		if err != nil {
			return netip.Addr{}
		}
		a = ap.Addr()
	}
	return a.Unmap().WithZone("")
}
