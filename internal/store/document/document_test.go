package document_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/store/document"
)

type inner struct {
	ID string `json:"id,omitempty"`
	N  int64  `json:"n,omitempty"`
}

type record struct {
	S string    `json:"s,omitempty"`
	L []string  `json:"l,omitempty"`
	N int64     `json:"n,omitempty"`
	B bool      `json:"b,omitempty"`
	T time.Time `json:"t,omitzero"`
	I inner     `json:"i"`
	E inner     `json:"e"`
}

func encode(v *record) []byte {
	w := document.New(100)
	w.String("s", v.S)
	w.Strings("l", v.L)
	w.Int("n", v.N)
	w.Bool("b", v.B)
	w.Time("t", v.T)
	for name, in := range map[string]inner{"i": v.I} {
		w.Object(name, func() { w.String("id", in.ID); w.Int("n", in.N) })
	}
	w.Object("e", func() { w.String("id", v.E.ID) })
	return w.End()
}

func decode(value []byte) (v record, err error) {
	r := document.Read(value)
	for r.Next() {
		switch string(r.Name()) {
		case "s":
			v.S = r.String()
		case "l":
			v.L = r.Strings()
		case "n":
			v.N = r.Int()
		case "b":
			v.B = r.Bool()
		case "t":
			v.T = r.Time()
		case "i":
			v.I = decodeInner(r)
		case "e":
			v.E = decodeInner(r)
		default:
			r.Unknown()
		}
	}
	return v, r.Err()
}

func decodeInner(r *document.Reader) (v inner) {
	for r.Object(); r.Next(); {
		switch string(r.Name()) {
		case "id":
			v.ID = r.String()
		case "n":
			v.N = r.Int()
		default:
			r.Unknown()
		}
	}
	return v
}

// TestAsEncodingJSON: the output is the same as from encoding/json, and can be read.
func TestAsEncodingJSON(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	for _, v := range []record{
		{},
		{S: "a", L: []string{"b", "", "c"}, N: -7, B: true, T: at, I: inner{"x", 1}},
		{S: "\"\\\n\x00é\u2028<", L: []string{`\`, `"`, "日本"}, N: 1<<63 - 1, E: inner{ID: `\"`}},
	} {
		want, err := json.Marshal(v)
		check.OK(t, err)
		got := encode(&v)
		var plain record
		if err := json.Unmarshal(got, &plain); err != nil || !reflect.DeepEqual(plain, v) {
			t.Errorf("%s is read as %+v, %v", got, plain, err)
		}
		for _, value := range [][]byte{want, got} {
			if read, err := decode(value); err != nil || !reflect.DeepEqual(read, v) {
				t.Errorf("%s is read as %+v, %v", value, read, err)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	for _, value := range []string{
		"", "null", "[]", `{"s":"a"`, `{"s":"a"}}`, `{"s":"a"} x`, `{"s":1}`, `{"s":null}`, `{"n":"1"}`, `{"n":1.5}`, `{"n":99999999999999999999}`,
		`{"new":1}`, `{"i":{"new":1}}`, `{"i":{"n":1}`, `{"i":7}`, `{"b":yes}`, `{"t":"today"}`, `{"l":["a"}`, `{"l":["a",]}`, `{"s":"a",}`, `{,"s":"a"}`,
		`{"s":"a" "n":1}`, "{\"s\":\"\n\"}", "{\"s\":\"\xff\"}", `{"s":"\x"}`, `{"s":"a\`, `{s:"a"}`,
	} {
		if v, err := decode([]byte(value)); err == nil {
			t.Errorf("%s is read as %+v", value, v)
		}
	}
	if _, err := decode([]byte(" {\t\"s\" : \"a\" , \"l\" : [ \"b\" , \"c\" ] ,\n \"i\" : { } , \"n\" : 3 } \n")); err != nil {
		t.Error(err)
	}
}

// FuzzRead: accepted input is valid, and reads the same after it is written again.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"s":"a\"","l":["b"],"n":-1,"b":true,"t":"2026-01-02T03:04:05Z","i":{"id":"x","n":1},"e":{"id":"é"}}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		v, err := decode(value)
		if err != nil {
			return
		}
		v.T, v.E.N = v.T.UTC(), 0 // neither is written
		again, err := decode(encode(&v))
		if !json.Valid(value) || err != nil || !reflect.DeepEqual(v, again) {
			t.Errorf("%q is read as %+v, then %+v, %v", value, v, again, err)
		}
	})
}
