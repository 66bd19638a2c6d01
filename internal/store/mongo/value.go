package mongo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// A value is a JSON object for the callers, and an embedded document in the database. Names keep their
// order. Whole numbers are stored as int32 or int64, others as doubles; a document that was edited in the
// shell has doubles for both, so a double without a fraction is read as a whole number. Dates, which the
// shell writes for new Date(), are read as RFC 3339 text.

// maxDepth is how deep values are nested at most. MongoDB's limit for documents is 100.
const maxDepth = 90

// documentOf returns the document of a JSON object. A number that neither an int64 nor a double holds is
// an error.
func documentOf(object []byte) (bson.Raw, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(object))
	if d.PeekKind() != '{' {
		return nil, errors.New("the value is no JSON object")
	}
	doc, err := appendContainer(make([]byte, 0, len(object)+len(object)/4+16), d, 0)
	if err != nil {
		return nil, fmt.Errorf("the value is no JSON object that can be stored: %w", err)
	}
	if _, err = d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is something behind the JSON object")
	}
	return doc, nil
}

// appendContainer appends the object or array that the decoder is at.
func appendContainer(dst []byte, d *jsontext.Decoder, depth int) ([]byte, error) {
	open, err := d.ReadToken()
	if err != nil {
		return dst, err
	}
	if depth > maxDepth {
		return dst, fmt.Errorf("nested more than %d deep", maxDepth)
	}
	array := open.Kind() == '['
	start, dst := bsoncore.AppendDocumentStart(dst)
	for n := 0; d.PeekKind() != '}' && d.PeekKind() != ']'; n++ {
		kindAt := len(dst)
		dst = append(dst, 0)
		if array {
			dst = strconv.AppendInt(dst, int64(n), 10)
		} else if dst, err = appendName(dst, d); err != nil {
			return dst, err
		}
		dst = append(dst, 0)
		var kind bson.Type
		if kind, dst, err = appendMember(dst, d, depth); err != nil {
			return dst, err
		}
		dst[kindAt] = byte(kind)
	}
	if _, err = d.ReadToken(); err != nil {
		return dst, err
	}
	return bsoncore.AppendDocumentEnd(dst, start)
}

func appendName(dst []byte, d *jsontext.Decoder) ([]byte, error) {
	name, err := d.ReadValue()
	if err != nil {
		return dst, err
	}
	start := len(dst)
	if dst, err = jsontext.AppendUnquote(dst, name); err == nil && bytes.IndexByte(dst[start:], 0) >= 0 {
		err = errors.New("a name contains a zero byte")
	}
	return dst, err
}

// appendMember appends the value that the decoder is at, without its name, and returns its type.
func appendMember(dst []byte, d *jsontext.Decoder, depth int) (bson.Type, []byte, error) {
	kind := d.PeekKind()
	switch kind {
	case '{':
		dst, err := appendContainer(dst, d, depth+1)
		return bson.TypeEmbeddedDocument, dst, err
	case '[':
		dst, err := appendContainer(dst, d, depth+1)
		return bson.TypeArray, dst, err
	}
	v, err := d.ReadValue()
	if err != nil {
		return 0, dst, err
	}
	switch kind {
	case '"':
		start, dst := bsoncore.ReserveLength(dst)
		dst, err := jsontext.AppendUnquote(dst, v)
		dst = append(dst, 0)
		return bson.TypeString, bsoncore.UpdateLength(dst, start, int32(len(dst))-start-4), err //nolint:gosec // not over MaxValue
	case 't', 'f':
		return bson.TypeBoolean, bsoncore.AppendBoolean(dst, kind == 't'), nil
	case 'n':
		return bson.TypeNull, dst, nil
	default:
		return appendNumber(dst, v)
	}
}

func appendNumber(dst, number []byte) (bson.Type, []byte, error) {
	if bytes.ContainsAny(number, ".eE") || string(number) == "-0" {
		f, err := strconv.ParseFloat(string(number), 64)
		return bson.TypeDouble, bsoncore.AppendDouble(dst, f), err
	}
	n, err := strconv.ParseInt(string(number), 10, 64)
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
