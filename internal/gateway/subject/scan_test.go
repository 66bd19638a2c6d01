package subject_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"oauth-server/internal/gateway/subject"
)

// sameAsJSON checks that the scanner accepts what encoding/json accepts.
func sameAsJSON(t *testing.T, body string) {
	t.Helper()
	malformed := read(t, "", body).Reason == subject.MalformedAnswer
	if valid := json.Valid([]byte(body)); valid == malformed {
		t.Errorf("%q: valid is %v, malformed %v", body, valid, malformed)
	}
}

// TestEveryByteInAString tries every byte at each of the eight positions that are checked together,
// also after an escape.
func TestEveryByteInAString(t *testing.T) {
	for at := range 18 {
		for c := range 256 {
			long := strings.Repeat("x", at) + string([]byte{byte(c)})
			sameAsJSON(t, `{"`+long+`xxxxxxxxxx":"y"}`)
			sameAsJSON(t, `{"y":"`+long+`"}`)
			sameAsJSON(t, `{"y":"\`+long+`"}`)
			sameAsJSON(t, `{"y":"`+strings.Repeat("\xff", at)+`\u00e`+string([]byte{byte(c)})+`"}`)
		}
	}
}

// TestValues reads values of every kind, complete and broken.
func TestValues(t *testing.T) {
	for _, value := range []string{
		"0", "-0", "01", "-", "1.", ".1", "1.5", "1e5", "1e", "1E+5", "1e-", "+1", "0x1", "1e5.5", "true", "tru", "truer", "false",
		"null", "nul", "NaN", "", "[]", "[ ]", "[1]", "[1,]", "[,1]", "[1 2]", "[1", "]", "[}", "{}", "{ }", `{"a":1}`, `{"a":1,}`,
		`{"a"}`, `{"a":}`, `{a:1}`, `{1:1}`, `{"a":1 "b":2}`, `{"a" : [ {"b" : "c" } , 2 ] }`, `{"a":1]`, "{", `'a'`, `"a`, `"\`, `"\u00`,
	} {
		for _, around := range []string{`{"k":%s}`, ` { "k" : %s , "l" : 1 } `, `{"k":[%s]}`, `{"k":%s`, `{"k":%s}}`, `{"k":%s,}`} {
			sameAsJSON(t, fmt.Sprintf(around, value))
		}
	}
	for _, body := range []string{"", " ", "{", "{}", "{}\v", "\ufeff{}", "{}{}", "{} \r\n\t"} {
		sameAsJSON(t, body)
	}
}

// TestDepth checks the maximum nesting.
func TestDepth(t *testing.T) {
	nested := func(n int) string { return `{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}` }
	sameAsJSON(t, nested(subject.MaxDepth-1))
	if got := read(t, "", nested(subject.MaxDepth+1)).Reason; got != subject.MalformedAnswer {
		t.Errorf("deeper: %v", got)
	}
}

// TestNoPointers checks that the garbage collector need not scan a chunk of either kind of record.
func TestNoPointers(t *testing.T) {
	for _, record := range subject.Records {
		for i := range record.NumField() {
			kind := record.Field(i).Type.Kind()
			if kind == reflect.Array {
				kind = record.Field(i).Type.Elem().Kind()
			}
			if kind < reflect.Int || kind > reflect.Uint64 {
				t.Errorf("%v.%s is a %v", record, record.Field(i).Name, kind)
			}
		}
	}
}
