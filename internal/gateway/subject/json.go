package subject

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Members calls each with the raw text of the name and value of every member of b, until each
// returns false. It reports whether the part of b that it read is a single JSON object (RFC 8259).
// Like encoding/json, it accepts a name twice and text that is not UTF-8.
func Members(b []byte, each func(name, value []byte) bool) bool {
	d := jsontext.NewDecoder(bytes.NewBuffer(b), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if begin, err := d.ReadToken(); err != nil || begin.Kind() != '{' {
		return false
	}
	// last returns the text that was read last. What the decoder returns may change.
	last := func(read jsontext.Value) []byte { return b[d.InputOffset()-int64(len(read)) : d.InputOffset()] }
	for d.PeekKind() == '"' {
		read, err := d.ReadValue()
		if err != nil {
			return false
		}
		name := last(read)
		if read, err = d.ReadValue(); err != nil {
			return false
		}
		if !each(name, last(read)) {
			return true
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return false
	}
	return len(bytes.TrimLeft(b[d.InputOffset():], " \t\r\n")) == 0
}

// find returns the raw texts of the values of the names in b, which must be a single JSON object.
// A value is nil if b does not have the name. find reports whether one of the names occurs twice,
// and whether b is such an object.
func find(b []byte, names ...string) (values [][]byte, twice, ok bool) {
	values = make([][]byte, len(names))
	ok = Members(b, func(raw, value []byte) bool {
		name, _ := text(raw)
		if i := slices.Index(names, string(name)); i >= 0 {
			twice = twice || values[i] != nil
			values[i] = value
		}
		return true
	})
	return values, twice, ok
}

// text decodes the raw text of a JSON string. It reports false if the value is not a string. Like
// encoding/json, it replaces an unpaired surrogate with U+FFFD.
func text(raw []byte) ([]byte, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return nil, false
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], true
	}
	decoded, _ := jsontext.AppendUnquote(nil, raw) // the scanner has checked everything but surrogates and UTF-8
	return decoded, true
}

// absent reports whether the value is missing or null.
func absent(raw []byte) bool { return raw == nil || string(raw) == "null" }
