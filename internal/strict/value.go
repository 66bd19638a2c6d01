package strict

import (
	"cmp"
	"slices"
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
	format *format
	line   int // 0: unknown
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

// format has the differences between the two formats.
type format struct {
	file       string // the file with the lines; empty: no lines
	wantObject string // the word for an object where one is needed
	anObject   string // the word for it among other values
	anNull     string
	isJSON     bool
}

var jsonFormat = &format{wantObject: "an object", anObject: "an object", anNull: "null", isJSON: true}

func yamlFormat(file string) *format {
	return &format{file: file, wantObject: "a mapping of fields", anObject: "a mapping", anNull: "empty"}
}

// IsObject reports whether v is an object or, in YAML, a mapping.
func (v *Value) IsObject() bool { return v.kind == object }

// IsNull reports whether v is null or nil.
func (v *Value) IsNull() bool { return v == nil || v.kind == null }

// absent reports whether v is null in JSON, which counts as absent.
func (v *Value) absent() bool { return v.kind == null && v.format.isJSON }

// isScalar reports whether v is text or written like text: not a list, object or null.
func (v *Value) isScalar() bool { return v.kind > null && v.kind < list }

// sorted returns v with its fields in the order of names, and the other fields after them by name:
// an object of JSON has no order of its own.
func (v *Value) sorted(names []string) *Value {
	rank := make(map[string]int, len(names))
	for i, name := range names {
		rank[name] = i - len(names)
	}
	out := *v
	out.fields = slices.SortedFunc(slices.Values(v.fields), func(a, b field) int {
		return cmp.Or(cmp.Compare(rank[a.name.text], rank[b.name.text]), strings.Compare(a.name.text, b.name.text))
	})
	return &out
}

// String describes v for a message: a scalar as written, and text in quotes.
func (v *Value) String() string {
	switch v.kind {
	case object:
		return v.format.anObject
	case list:
		return "a list"
	case null:
		return v.format.anNull
	default:
		plain := shorten(v.text, maxText)
		quoted := strconv.Quote(plain)
		if v.kind == text || len(quoted) > len(plain)+2 { // a YAML tag can make any text a number
			return quoted
		}
		return plain
	}
}

// instead describes v where an object is needed. It does not quote a scalar of a YAML file: the
// file may be a different one, such as one with a secret.
func (v *Value) instead() string {
	if !v.format.isJSON && v.isScalar() {
		return "text"
	}
	return v.String()
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
