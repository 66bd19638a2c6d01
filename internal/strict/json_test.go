package strict

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/check"
)

func parse(t *testing.T, s string) *Value {
	t.Helper()
	v, err := ParseJSON([]byte(s))
	if err != nil {
		t.Fatalf("ParseJSON(%s) = %v", s, err)
	}
	return v
}

// plain returns v as encoding/json reads it, for comparing regardless of order.
func plain(v *Value) any {
	switch v.kind {
	case null:
		return nil
	case object:
		out := map[string]any{}
		for _, f := range v.fields {
			out[f.name.text] = plain(f.value)
		}
		return out
	case list:
		out := []any{}
		for _, item := range v.items {
			out = append(out, plain(item))
		}
		return out
	default:
		return v.text
	}
}

// TestMergePatch runs the examples of RFC 7396 appendix A.
func TestMergePatch(t *testing.T) {
	for _, tt := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		target, patch, want := parse(t, tt[0]), parse(t, tt[1]), parse(t, tt[2])
		check.Equal(t, tt[0]+" with "+tt[1], plain(MergePatch(target, patch)), plain(want))
		if diff := cmp.Diff(plain(parse(t, tt[0])), plain(target)); diff != "" {
			t.Errorf("%s was changed itself:\n%s", tt[0], diff)
		}
	}
}

func TestParseJSONRefuses(t *testing.T) {
	for in, want := range map[string]string{
		``:                   "unexpected end",
		`{"a":`:              "unexpected end",
		`{} {}`:              "unexpected text after the JSON value",
		"\"\xff\"":           "invalid UTF-8",
		`"\ud800"`:           "invalid surrogate pair",
		`"\uDFFFx"`:          "invalid surrogate pair",
		`"\ud83d\u0041"`:     "invalid surrogate pair",
		`"\\\ud83d\n"`:       "invalid surrogate pair",
		`"\ud8`:              "unexpected end",
		`"\u`:                "unexpected end",
		`"\`:                 "unexpected end",
		`"\u00zz"`:           "invalid escape sequence",
		`{"a":1,"a":2}`:      `duplicate name "a" in an object`,
		`{"\u0061":1,"a":2}`: `duplicate name "a" in an object`,
		`{a:1}`:              "invalid character 'a'",
		`[{"b":{},"b":}]`:    `duplicate name "b"`,
		strings.Repeat("[", 17) + strings.Repeat("]", 17): "it is nested too deeply",
	} {
		_, err := ParseJSON([]byte(in))
		check.ErrorSays(t, err, want)
	}
	parse(t, strings.Repeat("[", 16)+strings.Repeat("]", 16))
	check.Equal(t, "escapes", parse(t, `"\ud83d\uDE00 \\ud800 \ufffd"`).text, "\U0001F600 \\ud800 \ufffd")
}

func TestNumbersGoByTheirDigits(t *testing.T) {
	for in, want := range map[string]string{
		"0": "0", "-0": "0", "0.00e5": "0", "-7": "-7", "1e3": "1000", "10.0": "10", "1.5e1": "15", "100e-2": "1",
		"-0.0005E+4": "-5", "9007199254740993.0": "9007199254740993", "9223372036854775807": "9223372036854775807",
		"-9223372036854775808": "-9223372036854775808", "1e18": "1000000000000000000",
	} {
		if v := parse(t, in); v.kind != integer || v.text != want {
			t.Errorf("%s is read as %v %s, want the whole number %s", in, v.kind, v.text, want)
		}
	}
	for _, in := range []string{
		"0.99999999999999999999", "1.5", "1e-1", "9223372036854775808", "1e19", "1e400", "1e99999999999999999999",
		"1e9223372036854775807", "1e-9223372036854775808", "9007199254740993.5",
	} {
		if v := parse(t, in); v.kind != number || v.text != in {
			t.Errorf("%s is read as %v %s, want that number", in, v.kind, v.text)
		}
	}
}

func TestJSONErrorsSayWhere(t *testing.T) {
	for in, want := range map[string]string{
		"mode: off":                          "line 1, column 1: ",
		"{\"a\": [1,\n  nil]}":               "line 2, column 4: ",
		"{\n \"a\": 1,\n \"a\": 2\n}":        "line 3, column 2: duplicate name",
		"{\"a\":\n":                          "line 2, column 1: unexpected end",
		"":                                   "line 1, column 1: unexpected end",
		"{}\n\n  {}":                         "line 3, column 3: unexpected text",
		"{}\n x":                             "line 2, column 2: unexpected text",
		"{\"é\" 1}":                          "line 1, column 7: ",
		"{\"a\":\n\"\xff\"}":                 "line 2, column 2: invalid UTF-8",
		"[\"\\ud83d\\ude00\",\n\"\\ude00\"]": "line 2, column 2: invalid surrogate pair",
		strings.Repeat("[\n", 17):            "line 17, column 2: it is nested too deeply",
	} {
		if _, err := ParseJSON([]byte(in)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("ParseJSON(%q) = %v, want %s", in, err, want)
		}
	}
}
