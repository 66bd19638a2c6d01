package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds the nesting of JSON. No document of this program is deeper than five.
const maxDepth = 16

// ParseJSON reads one JSON value and nothing after it. It refuses more than encoding/json does: a
// repeated name in an object, invalid UTF-8, half of a surrogate pair and deep nesting. Two readers
// could interpret these differently.
func ParseJSON(b []byte) (*Value, error) {
	if at := firstInvalid(b); at >= 0 {
		return nil, position(b, int64(at), errors.New("it is not UTF-8"))
	}
	if at := halfPair(b); at >= 0 {
		return nil, position(b, int64(at), errors.New("an escape such as \\ud800 is half of a surrogate pair"))
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	v, err := readJSON(d, 0)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, position(b, int64(len(b)), errors.New("it ends too early"))
	case err != nil:
		return nil, position(b, d.InputOffset(), err)
	}
	if rest := bytes.TrimLeft(b[d.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return nil, position(b, int64(len(b)-len(rest)), errors.New("something follows the JSON value"))
	}
	return v, nil
}

// firstInvalid returns the index of the first byte of b that is not UTF-8, or -1.
func firstInvalid(b []byte) int {
	for at := 0; at < len(b); {
		r, size := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

// halfPair returns the index of an escape for half of a UTF-16 surrogate pair, or -1. encoding/json
// would silently replace it.
func halfPair(b []byte) int {
	for at := 0; ; {
		next := bytes.IndexByte(b[at:], '\\')
		if next < 0 || at+next+1 == len(b) {
			return -1
		}
		at += next
		switch first := escaped(b[at:]); {
		case !utf16.IsSurrogate(first):
			at += 2
		case utf16.DecodeRune(first, escaped(b[at+6:])) == unicode.ReplacementChar:
			return at
		default:
			at += 12
		}
	}
}

// escaped returns the UTF-16 unit of an escape such as \u00e9 at the start of b, or 0 without an
// escape.
func escaped(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}

// Of returns the value that [ParseJSON] reads from the JSON of v.
func Of(v any) (*Value, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return ParseJSON(b)
}

func readJSON(d *json.Decoder, depth int) (*Value, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	v := &Value{format: jsonFormat}
	switch t := token.(type) {
	case nil:
		v.kind = null
	case bool:
		v.kind, v.text = boolean, strconv.FormatBool(t)
	case string:
		v.kind, v.text = text, t
	case json.Number:
		v.kind, v.text = readNumber(t.String())
	case json.Delim:
		if depth == maxDepth {
			return nil, errors.New("it is nested too deeply")
		}
		if v.kind = list; t == '{' {
			v.kind = object
		}
		err = v.readContent(d, depth+1)
	}
	return v, err
}

// readContent reads the items of a list or the fields of an object, and the closing bracket.
func (v *Value) readContent(d *json.Decoder, depth int) error {
	seen := map[string]bool{}
	for d.More() {
		item, err := readJSON(d, depth)
		if err != nil {
			return err
		}
		if v.kind == list {
			v.items = append(v.items, item)
			continue
		}
		if seen[item.text] {
			return fmt.Errorf("the name %q stands twice in one object", shorten(item.text, maxText))
		}
		seen[item.text] = true
		value, err := readJSON(d, depth)
		if err != nil {
			return err
		}
		v.fields = append(v.fields, field{item, value})
	}
	_, err := d.Token()
	return err
}

// readNumber recognises whole numbers by their digits: 1e3 and 10.0 are whole,
// 0.99999999999999999999 is not. A whole number that does not fit into 64 bits counts as a number.
func readNumber(s string) (kind, string) {
	mantissa, power, found := strings.Cut(strings.ToLower(s), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimRight(whole+fraction, "0")
	if digits == "" || digits == "-" {
		return integer, "0"
	}
	exponent, err := 0, error(nil)
	if found {
		exponent, err = strconv.Atoi(power)
	}
	zeros := exponent + len(whole) - len(digits)
	if err != nil || zeros < 0 || zeros > 18 {
		return number, s
	}
	n, err := strconv.ParseInt(digits+strings.Repeat("0", zeros), 10, 64)
	if err != nil {
		return number, s
	}
	return integer, strconv.FormatInt(n, 10)
}

// MergePatch applies a JSON merge patch (RFC 7396) and returns the result.
func MergePatch(target, patch *Value) *Value {
	if patch.kind != object {
		return patch
	}
	out := &Value{kind: object, format: jsonFormat}
	changes := map[string]*Value{}
	for _, change := range patch.fields {
		changes[change.name.text] = change.value
	}
	if target.kind == object {
		for _, f := range target.fields {
			change, changed := changes[f.name.text]
			delete(changes, f.name.text)
			switch {
			case !changed:
				out.fields = append(out.fields, f)
			case change.kind != null:
				out.fields = append(out.fields, field{f.name, MergePatch(f.value, change)})
			}
		}
	}
	for _, f := range patch.fields {
		if change, added := changes[f.name.text]; added && change.kind != null {
			out.fields = append(out.fields, field{f.name, MergePatch(&Value{format: jsonFormat}, change)})
		}
	}
	return out
}
