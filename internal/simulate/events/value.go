package events

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// kind is the notation of a value.
type kind uint8

const (
	absent  kind = iota // also null
	plain               // text without escapes
	escaped             // text with the escapes of a JSON string
	quoted              // text with the escapes of a quoted Go string, as slog writes it
	slashed             // text with a backslash before quotes
	logged              // text with the escapes of Apache and nginx
	doubled             // text with doubled quotes
	number
	truth     // true or false
	composite // an object or an array
)

// value is a field of a line. It is valid until the next line.
type value struct {
	kind kind
	raw  []byte // text without its quotes
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
		*buf = unescape((*buf)[:0], v.raw)
		return *buf
	case slashed:
		*buf = unslash((*buf)[:0], v.raw)
		return *buf
	case logged:
		if bytes.IndexByte(v.raw, '\\') < 0 {
			return v.raw
		}
		*buf = unescapeLogged((*buf)[:0], v.raw)
		return *buf
	case doubled:
		*buf = append((*buf)[:0], bytes.ReplaceAll(v.raw, []byte(`""`), []byte(`"`))...)
		return *buf
	case quoted:
		text, err := strconv.Unquote(`"` + string(v.raw) + `"`)
		if err != nil {
			return v.raw
		}
		*buf = append((*buf)[:0], text...)
		return *buf
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
	n, ok := whole(v.raw)
	if !ok {
		return v.raw
	}
	*buf = strconv.AppendInt((*buf)[:0], int64(n), 10)
	return *buf
}

// is reports whether the value equals text, which must not need escapes.
func (v value) is(text string) bool { return string(v.raw) == text && v.kind != composite }

// unslash removes the backslashes before quotes.
func unslash(to, from []byte) []byte {
	for i := 0; i < len(from); i++ {
		if from[i] == '\\' && i+1 < len(from) && (from[i+1] == '"' || from[i+1] == '\'') {
			i++
		}
		to = append(to, from[i])
	}
	return to
}

// unescapeLogged decodes the escapes of web servers: \" and \\, \n and similar ones, and \x22.
// Invalid escapes stay unchanged.
func unescapeLogged(to, from []byte) []byte {
	const letters, means = `"'\nrtbvf`, "\"'\\\n\r\t\b\v\f"
	for i := 0; i < len(from); i++ {
		if from[i] != '\\' || i+1 == len(from) {
			to = append(to, from[i])
			continue
		}
		if at := strings.IndexByte(letters, from[i+1]); at >= 0 {
			to = append(to, means[at])
			i++
			continue
		}
		if n, err := hex.DecodeString(string(from[min(i+2, len(from)):min(i+4, len(from))])); err == nil && len(n) == 1 && from[i+1] == 'x' {
			to = append(to, n[0])
			i += 3
			continue
		}
		to = append(to, '\\')
	}
	return to
}

// unescape decodes the escapes of a JSON string (RFC 8259 7). Invalid escapes stay unchanged.
func unescape(to, from []byte) []byte {
	for i := 0; i < len(from); i++ {
		c := from[i]
		if c != '\\' || i+1 == len(from) {
			to = append(to, c)
			continue
		}
		i++
		switch c = from[i]; c {
		case 'n':
			to = append(to, '\n')
		case 't':
			to = append(to, '\t')
		case 'r':
			to = append(to, '\r')
		case 'b':
			to = append(to, '\b')
		case 'f':
			to = append(to, '\f')
		case 'u':
			r, n := codePoint(from[i+1:])
			to = utf8.AppendRune(to, r)
			i += n
		default:
			to = append(to, c)
		}
	}
	return to
}

// codePoint decodes the text after \u, and returns how many bytes it used. A lone surrogate becomes
// U+FFFD.
func codePoint(b []byte) (r rune, n int) {
	first, ok := hex4(b)
	if !ok {
		return utf8.RuneError, 0
	}
	if !utf16.IsSurrogate(first) {
		return first, 4
	}
	if len(b) >= 6 && b[4] == '\\' && b[5] == 'u' {
		if second, ok := hex4(b[6:]); ok {
			if r := utf16.DecodeRune(first, second); r != utf8.RuneError {
				return r, 10
			}
		}
	}
	return utf8.RuneError, 4
}

func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(b[:4]), 16, 32)
	return rune(n), err == nil && b[0] != '+' && b[0] != '-'
}

// slots is how many strings are kept.
const slots = 1 << 16

// strings keeps one copy of frequent strings: the IDs of clients and users. It is a table of a
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
	slot := &t.seen[hash(b)%slots]
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
	slot := &t.addrs[hash(b)%(slots/8)]
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

// hash is FNV-1a. The writer of a log can make strings collide, but that costs only copies.
func hash(b []byte) uint32 {
	h := uint32(2166136261)
	for _, c := range b {
		h = (h ^ uint32(c)) * 16777619
	}
	return h ^ h>>15
}
