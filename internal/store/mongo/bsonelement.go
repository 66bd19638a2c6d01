package mongo

import (
	"encoding/binary"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// element is a field of a BSON document, or an item of an array, with the bytes of its value.
type element struct {
	name  string
	kind  bson.Type
	value string
}

// eachElement calls do with the elements of a document or array until it returns false. It returns false then,
// and if the text is not one document of elements whose types are known to sizeOf.
func eachElement(document string, do func(element) bool) bool {
	end := len(document) - 1
	if end < 4 || lengthIn(document) != len(document) || document[end] != 0 {
		return false
	}
	for rest := document[4:end]; rest != ""; {
		e := element{kind: bson.Type(rest[0])}
		var ok bool
		if e.name, rest, ok = strings.Cut(rest[1:], "\x00"); !ok {
			return false
		}
		size := sizeOf(e.kind, rest)
		if size < 0 || size > len(rest) {
			return false
		}
		e.value, rest = rest[:size], rest[size:]
		if !do(e) {
			return false
		}
	}
	return true
}

// sizeOf returns the size of the value of that type that a text begins with; below 0: it is not known. The types
// are those of the clients' documents.
func sizeOf(kind bson.Type, text string) int {
	switch kind {
	case bson.TypeBoolean:
		return 1
	case bson.TypeInt64, bson.TypeDateTime:
		return 8
	case bson.TypeString:
		return 4 + lengthIn(text)
	case bson.TypeBinary:
		return 5 + lengthIn(text) // and the subtype
	case bson.TypeArray, bson.TypeEmbeddedDocument:
		return lengthIn(text)
	default:
		return -1
	}
}

// lengthIn returns the length that a text begins with; far below 0: there is none.
func lengthIn(text string) int {
	if len(text) < 4 {
		return -1 << 16
	}
	return int(int32(binary.LittleEndian.Uint32([]byte(text[:4])))) //nolint:gosec // as it is stored
}

func (e element) text() (string, bool) {
	end := len(e.value) - 1
	if e.kind != bson.TypeString || end < 4 || e.value[end] != 0 {
		return "", false
	}
	return e.value[4:end], true
}

func (e element) bytes() ([]byte, bool) {
	if e.kind != bson.TypeBinary || len(e.value) < 5 || e.value[4] != bson.TypeBinaryGeneric {
		return nil, false
	}
	return []byte(e.value[5:]), true
}

func (e element) flag() (v, ok bool) {
	return e.value == "\x01", e.kind == bson.TypeBoolean && e.value <= "\x01"
}

func (e element) integer() (int64, bool) {
	if e.kind != bson.TypeInt64 {
		return 0, false
	}
	return e.number(), true
}

func (e element) time() (time.Time, bool) {
	if e.kind != bson.TypeDateTime {
		return time.Time{}, false
	}
	return time.UnixMilli(e.number()).UTC(), true
}

// number is a value of eight bytes.
func (e element) number() int64 {
	return int64(binary.LittleEndian.Uint64([]byte(e.value))) //nolint:gosec // as it is stored
}

// listOf returns an array of texts.
func listOf[T ~string](e element) (list []T, ok bool) {
	list = make([]T, 0, 2) // most have no more
	ok = e.kind == bson.TypeArray && eachElement(e.value, func(item element) bool {
		text, ok := item.text()
		list = append(list, T(text))
		return ok
	})
	return list, ok
}
