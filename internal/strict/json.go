package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth bounds the nesting of JSON. No document of this program is deeper than five.
const maxDepth = 16

// ParseJSON reads one JSON value and nothing after it. It refuses more than encoding/json does: a
// repeated name in an object, invalid UTF-8, half of a surrogate pair and deep nesting. Two readers
// could interpret these differently. An error begins with the line and the column, counted in bytes
// from 1.
func ParseJSON(b []byte) (*Value, error) {
	d := jsontext.NewDecoder(bytes.NewReader(b))
	v, err := readJSON(d)
	offset := d.InputOffset()
	if err == nil {
		rest := bytes.TrimLeft(b[offset:], " \t\r\n")
		if len(rest) == 0 {
			return v, nil
		}
		offset, err = int64(len(b)-len(rest)), errors.New("unexpected text after the JSON value")
	}
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		offset, err = int64(len(b)), errors.New("unexpected end")
	case errors.As(err, &syntax):
		offset, err = syntax.ByteOffset, syntax.Err
		if errors.Is(err, jsontext.ErrDuplicateName) {
			err = fmt.Errorf("duplicate name %q in an object", syntax.JSONPointer.LastToken())
		}
	}
	before := b[:offset]
	line, column := bytes.Count(before, []byte("\n"))+1, len(before)-bytes.LastIndexByte(before, '\n')
	return nil, fmt.Errorf("line %d, column %d: %w", line, column, err)
}

// Of returns the value that [ParseJSON] reads from the JSON of v.
func Of(v any) (*Value, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return ParseJSON(b)
}

func readJSON(d *jsontext.Decoder) (*Value, error) {
	t, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	v := &Value{}
	switch t.Kind() {
	case 't', 'f':
		v.kind, v.text = boolean, t.String()
	case '"':
		v.kind, v.text = text, t.String()
	case '0':
		v.kind, v.text = readNumber(t.String())
	case '[', '{':
		return readContent(d, t.Kind())
	}
	return v, nil
}

// readContent reads the items of a list or the fields of an object, and the closing bracket.
func readContent(d *jsontext.Decoder, open jsontext.Kind) (*Value, error) {
	if d.StackDepth() > maxDepth {
		return nil, errors.New("it is nested too deeply")
	}
	v := &Value{kind: list}
	if open == '{' {
		v.kind = object
	}
	for next := d.PeekKind(); next != ']' && next != '}'; next = d.PeekKind() {
		item, err := readJSON(d)
		if err != nil {
			return nil, err
		}
		if v.kind == list {
			v.items = append(v.items, item)
			continue
		}
		value, err := readJSON(d)
		if err != nil {
			return nil, err
		}
		v.fields = append(v.fields, field{item, value})
	}
	_, err := d.ReadToken()
	return v, err
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
	kept := map[string]*Value{}
	for _, f := range target.fields {
		kept[f.name.text] = f.value
	}
	out := &Value{kind: object}
	for _, f := range patch.fields {
		old, known := kept[f.name.text]
		if !known {
			old = &Value{}
		}
		delete(kept, f.name.text)
		if f.value.kind != null {
			out.fields = append(out.fields, field{f.name, MergePatch(old, f.value)})
		}
	}
	for _, f := range target.fields {
		if kept[f.name.text] != nil {
			out.fields = append(out.fields, f)
		}
	}
	return out
}
