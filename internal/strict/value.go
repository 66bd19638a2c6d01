package strict

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Value is one value of a document: what JSON and YAML have in common. It is never
// changed once it is read.
type Value struct {
	kind   kind
	text   string   // of a scalar, as it is written
	items  []*Value // of a list
	fields []field  // of an object, in their order
	format *format
	line   int // 0: not known
}

// field is one pair of an object. In YAML its name can be any value.
type field struct{ name, value *Value }

type kind int

const (
	null kind = iota
	boolean
	integer
	number // that is no integer
	text
	scalar // of another type, which only YAML has: a date
	list
	object
)

// format is what the two formats differ in.
type format struct {
	file       string // that lines are counted in; empty: there are none
	wantObject string // what an object is called where one is needed
	anObject   string // and among other values
	anNull     string
	isJSON     bool
}

var jsonFormat = &format{wantObject: "an object", anObject: "an object", anNull: "null", isJSON: true}

func yamlFormat(file string) *format {
	return &format{file: file, wantObject: "a mapping of fields", anObject: "a mapping", anNull: "empty"}
}

// IsObject reports whether v is an object or, in YAML, a mapping.
func (v *Value) IsObject() bool { return v.kind == object }

// IsNull reports whether v is null, or nothing at all.
func (v *Value) IsNull() bool { return v == nil || v.kind == null }

// absent reports whether v is null in JSON, which is as if it were not there.
func (v *Value) absent() bool { return v.kind == null && v.format.isJSON }

// isScalar reports whether v is text or written like text: no list, object or null.
func (v *Value) isScalar() bool { return v.kind > null && v.kind < list }

// sorted returns v with its fields in the order of names, the others last by their names: an
// object of JSON has no order of its own.
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

// String describes v in a message: a scalar as it is written, and text in quotes.
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

// instead describes v where an object is needed. A scalar of a YAML file is not
// quoted: it may be another file altogether, such as one with a secret.
func (v *Value) instead() string {
	if !v.format.isJSON && v.isScalar() {
		return "text"
	}
	return v.String()
}

// What a message shows of a value, and a path of a name, in bytes. Many values can have one
// long name in their paths.
const (
	maxText = 64
	maxName = 200
)

// shorten keeps a message from growing with the document.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
