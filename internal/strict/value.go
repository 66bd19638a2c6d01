package strict

import (
	"strconv"
	"strings"
)

// Value is one value of a document, in the form that JSON and YAML share. It does not change after
// it was read.
type Value struct {
	kind   kind
	text   string   // of a scalar, as written
	items  []*Value // of a list
	fields []field  // of an object, in their order
	file   string   // of a YAML document
	line   int      // in the file; 0: a value of JSON, or unknown
}

// field is one pair of an object. In YAML the name can be any value.
type field struct{ name, value *Value }

type kind int

const (
	null kind = iota
	boolean
	integer
	number // not an integer
	text
	scalar // of a type that only YAML has: a date
	list
	object
)

// IsObject reports whether v is an object or, in YAML, a mapping.
func (v *Value) IsObject() bool { return v.kind == object }

// IsNull reports whether v is null or nil.
func (v *Value) IsNull() bool { return v == nil || v.kind == null }

func (v *Value) isJSON() bool { return v.line == 0 }

// isScalar reports whether v is text or written like text: not a list, object or null.
func (v *Value) isScalar() bool { return v.kind > null && v.kind < list }

// origin returns the position of v; empty for JSON.
func (v *Value) origin() string {
	if v.line == 0 {
		return v.file
	}
	return v.file + ":" + strconv.Itoa(v.line)
}

// String describes v for a message: a scalar as written, and text in quotes.
func (v *Value) String() string {
	switch v.kind {
	case object:
		return "an object"
	case list:
		return "a list"
	case null:
		return "null"
	default:
		plain := shorten(v.text, maxText)
		quoted := strconv.Quote(plain)
		if v.kind == text || len(quoted) > len(plain)+2 { // a YAML tag can make any text a number
			return quoted
		}
		return plain
	}
}

// How many bytes a message shows of a value, and a path of a name. The paths of many values can
// contain one long name.
const (
	maxText = 64
	maxName = 200
)

// shorten bounds the length of a message, however large the document.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
