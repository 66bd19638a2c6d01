package mongo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// A value is a JSON object for the callers, and an embedded document in the database. Names keep
// their order. Whole numbers are stored as int32 or int64, others as doubles. A document that was
// edited in the shell has doubles for both, so a double without a fraction is read as a whole
// number. The shell writes dates for new Date(). They are read as RFC 3339 text.

// maxDepth is how deep values can be nested. MongoDB's limit for documents is 100.
const maxDepth = 90

// documentOf returns the document of a JSON object. A number that fits neither an int64 nor a
// double is an error.
func documentOf(object []byte) (bson.Raw, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(object))
	kind, doc, err := appendValue(make([]byte, 0, len(object)+len(object)/4+16), d, 0)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the value is not a storable JSON object: %w", err)
	case kind != bson.TypeEmbeddedDocument:
		return nil, errors.New("the value is not a JSON object")
	}
	if _, err = d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("unexpected data after the JSON object")
	}
	return doc, nil
}

// appendValue appends the decoder's next value, without a name, and returns its type.
func appendValue(dst []byte, d *jsontext.Decoder, depth int) (bson.Type, []byte, error) {
	t, err := d.ReadToken()
	if err != nil {
		return 0, dst, err
	}
	switch t.Kind() {
	case '{':
		dst, err = appendMembers(dst, d, depth, '}')
		return bson.TypeEmbeddedDocument, dst, err
	case '[':
		dst, err = appendMembers(dst, d, depth, ']')
		return bson.TypeArray, dst, err
	case '"':
		return bson.TypeString, bsoncore.AppendString(dst, t.String()), nil
	case 't', 'f':
		return bson.TypeBoolean, bsoncore.AppendBoolean(dst, t.Bool()), nil
	case 'n':
		return bson.TypeNull, dst, nil
	default:
		return appendNumber(dst, t.String())
	}
}

// appendMembers appends an object or array. The decoder is after the first bracket.
func appendMembers(dst []byte, d *jsontext.Decoder, depth int, end jsontext.Kind) ([]byte, error) {
	if depth > maxDepth {
		return dst, fmt.Errorf("nested more than %d deep", maxDepth)
	}
	start, dst := bsoncore.AppendDocumentStart(dst)
	for n := 0; d.PeekKind() != end; n++ {
		name := strconv.Itoa(n)
		if end == '}' {
			t, err := d.ReadToken()
			if err != nil {
				return dst, err
			}
			if name = t.String(); strings.Contains(name, "\x00") {
				return dst, errors.New("a name contains a zero byte")
			}
		}
		at := len(dst)
		kind, more, err := appendValue(bsoncore.AppendHeader(dst, 0, name), d, depth+1)
		if err != nil {
			return dst, err
		}
		dst = more
		dst[at] = byte(kind)
	}
	if _, err := d.ReadToken(); err != nil {
		return dst, err
	}
	return bsoncore.AppendDocumentEnd(dst, start)
}

func appendNumber(dst []byte, number string) (bson.Type, []byte, error) {
	if strings.ContainsAny(number, ".eE") || number == "-0" {
		f, err := strconv.ParseFloat(number, 64)
		return bson.TypeDouble, bsoncore.AppendDouble(dst, f), err
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if n == int64(int32(n)) { //nolint:gosec // that is the question
		return bson.TypeInt32, bsoncore.AppendInt32(dst, int32(n)), err //nolint:gosec // see above
	}
	return bson.TypeInt64, bsoncore.AppendInt64(dst, n), err
}

var errDamaged = errors.New("a document is damaged")

// elements calls do with the elements of a document, until it fails.
func elements(doc []byte, do func(e bsoncore.Element) error) error {
	length, rest, ok := bsoncore.ReadLength(doc)
	if !ok || int(length) != len(doc) || len(rest) == 0 || rest[len(rest)-1] != 0 {
		return errDamaged
	}
	for rest = rest[:len(rest)-1]; len(rest) > 0; {
		var e bsoncore.Element
		if e, rest, ok = bsoncore.ReadElement(rest); !ok {
			return errDamaged
		}
		if err := do(e); err != nil {
			return err
		}
	}
	return nil
}

// appendObject appends the JSON object of a document, or the array.
func appendObject(dst, doc []byte, array bool, depth int) ([]byte, error) {
	if depth > maxDepth {
		return dst, fmt.Errorf("nested more than %d deep", maxDepth)
	}
	brackets := "{}"
	if array {
		brackets = "[]"
	}
	separator := brackets[0]
	err := elements(doc, func(e bsoncore.Element) (err error) {
		dst = append(dst, separator)
		separator = ','
		if !array {
			if dst, err = jsontext.AppendQuote(dst, e.KeyBytes()); err != nil {
				return err
			}
			dst = append(dst, ':')
		}
		if dst, err = appendElement(dst, e.Value(), depth); err != nil {
			err = fmt.Errorf("%s: %w", e.Key(), err)
		}
		return err
	})
	if separator != ',' {
		dst = append(dst, separator)
	}
	return append(dst, brackets[1]), err
}

func appendElement(dst []byte, v bsoncore.Value, depth int) ([]byte, error) {
	switch v.Type {
	case bsoncore.TypeEmbeddedDocument, bsoncore.TypeArray:
		return appendObject(dst, v.Data, v.Type == bsoncore.TypeArray, depth+1)
	case bsoncore.TypeString:
		if len(v.Data) < 5 {
			return dst, errors.New("a text is damaged")
		}
		return jsontext.AppendQuote(dst, v.Data[4:len(v.Data)-1])
	case bsoncore.TypeInt32, bsoncore.TypeInt64:
		return strconv.AppendInt(dst, v.AsInt64(), 10), nil
	case bsoncore.TypeDouble:
		return appendDouble(dst, v.Double())
	case bsoncore.TypeBoolean:
		return strconv.AppendBool(dst, v.Boolean()), nil
	case bsoncore.TypeNull:
		return append(dst, "null"...), nil
	case bsoncore.TypeDateTime:
		t := v.Time().UTC()
		if t.Year() < 0 || t.Year() > 9999 {
			return dst, fmt.Errorf("a date in the year %d", t.Year())
		}
		return append(t.AppendFormat(append(dst, '"'), time.RFC3339Nano), '"'), nil
	default:
		return dst, fmt.Errorf("a value of type %s", bson.Type(v.Type))
	}
}

func appendDouble(dst []byte, f float64) ([]byte, error) {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return dst, fmt.Errorf("the number %v", f)
	case f == math.Trunc(f) && math.Abs(f) <= 1<<53 && (f != 0 || !math.Signbit(f)):
		return strconv.AppendInt(dst, int64(f), 10), nil
	}
	return append(dst, jsontext.Float(f).String()...), nil
}
