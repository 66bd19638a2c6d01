package events

import (
	"bytes"
	"math"
	"net/netip"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// kind is the notation of a value.
type kind uint8

const (
	absent    kind = iota // also null
	plain                 // text
	literal               // a number, true or false
	composite             // an object or an array
)

// value is a field of a line: its decoded text, or a whole object or array. It is valid until the
// next line.
type value struct {
	kind kind
	raw  []byte
}

// text returns the text of a value that has one.
func (v value) text() []byte {
	if v.kind == composite {
		return nil
	}
	return v.raw
}

// present reports whether the field exists and is not empty.
func (v value) present() bool { return len(v.text()) > 0 }

// integer returns a number without the fraction or the exponent of a float if it is whole: the id
// 4622.0 is the id 4622.
func integer(number []byte) []byte {
	if !bytes.ContainsAny(number, ".eE") {
		return number
	}
	n, err := strconv.ParseFloat(string(number), 64)
	if err != nil || n != math.Trunc(n) || math.Abs(n) >= 1<<53 {
		return number
	}
	return strconv.AppendInt(nil, int64(n), 10)
}

// decoder decodes the escapes of the texts of a line.
type decoder struct{ buf []byte }

// unescape decodes a JSON string. A string that is not valid stays as it is.
func (d *decoder) unescape(text []byte) []byte {
	start := len(d.buf)
	out, err := jsontext.AppendUnquote(d.buf, text)
	if err != nil {
		return text[1 : len(text)-1]
	}
	d.buf = out
	return out[start:len(out):len(out)]
}

// unquote decodes the escapes of Go, which slog, Apache and nginx use. A text with other escapes
// stays as it is.
func unquote(text []byte) []byte {
	if bytes.IndexByte(text, '\\') < 0 {
		return text
	}
	decoded, err := strconv.Unquote(`"` + string(text) + `"`)
	if err != nil {
		return text
	}
	return []byte(decoded)
}

// parseAddr returns the first address of a list, with or without ports. It returns zero if there is
// no address.
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
