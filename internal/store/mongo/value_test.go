package mongo

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"oauth-server/internal/check"
)

func TestValueRoundTrip(t *testing.T) {
	const object = `{"z":[[],{},null,true,false,"x"],"":"","ä":"\"\\ \n€ 😀","$a":{"$b.c":1},` +
		`"n":[0,-1,2147483647,2147483648,-9223372036854775808,9223372036854775807],"f":[1.5,-0,1e-7,0.1,5e-324,1.7976931348623157e+308]}`
	doc, err := documentOf([]byte(object))
	check.OK(t, err)
	back, err := appendObject(nil, doc, false, 0)
	check.OK(t, err)
	check.Equal(t, "object", string(back), object)
}

func TestValueRefused(t *testing.T) {
	for _, bad := range []string{
		``, `1`, `[]`, `{"a":1`, `{} {}`, `{"a":1,"a":2}`, `{"n":9223372036854775808}`, `{"n":1e400}`, `{"a\u0000b":1}`, "{\"a\":\"\xff\"}",
		strings.Repeat(`{"a":`, 200) + `{}` + strings.Repeat(`}`, 200),
	} {
		if doc, err := documentOf([]byte(bad)); err == nil {
			t.Errorf("%s is stored as %s", bad, doc)
		}
	}
}

// FuzzValue: a stored value reads as the same object, and no document makes the reader panic.
func FuzzValue(f *testing.F) {
	f.Add([]byte(`{"a":[1,2.5,"x",null,true,{"b":-0}],"c":1e3}`))
	f.Add([]byte("\x0c\x00\x00\x00\x10a\x00\x01\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if object, err := appendObject(nil, data, false, 0); err == nil && !json.Valid(object) {
			t.Errorf("a document reads as %s", object)
		}
		doc, err := documentOf(data)
		if err != nil {
			return
		}
		check.OK(t, doc.Validate())
		back, err := appendObject(nil, doc, false, 0)
		check.OK(t, err)
		if !reflect.DeepEqual(tokens(t, back), tokens(t, data)) {
			t.Errorf("%s reads as %s", data, back)
		}
	})
}

// tokens returns the tokens of a JSON text, with numbers as float64 or int64.
func tokens(t *testing.T, text []byte) (list []any) {
	t.Helper()
	for d := jsontext.NewDecoder(bytes.NewReader(text)); ; {
		token, err := d.ReadToken()
		switch {
		case err != nil:
			return list
		case token.Kind() == '0' && strings.ContainsAny(token.String(), ".eE"):
			list = append(list, token.Float())
		case token.Kind() == '0':
			list = append(list, float64(token.Int()))
		default:
			list = append(list, token.String())
		}
	}
}
