package strict

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"oauth-server/internal/check"
)

func TestAnyValue(t *testing.T) {
	v, errs := ParseYAML("x.yaml", []byte("a: 1\nb: [x, 2.5, true, ~]\nc: {d: \"3\"}\n"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var got map[string]any
	origins := map[string]string{}
	if errs := v.Decode(&got, origins); len(errs) > 0 {
		t.Fatal(errs)
	}
	want := map[string]any{"a": int64(1), "b": []any{"x", 2.5, true, nil}, "c": map[string]any{"d": "3"}}
	check.Equal(t, "values", got, want)
	if origins["b[1]"] != "x.yaml:2" || origins["c.d"] != "x.yaml:3" {
		t.Errorf("origins: %v", origins)
	}
}

func TestAnyValueIsStrict(t *testing.T) {
	for text, says := range map[string]string{
		"a:\n  b: 1\n  c: 2\n  b: 3\n":     "x.yaml:4",
		"a: 2026-01-01\n":                  "write it in quotes",
		"a: 0x10\n":                        "decimal whole number",
		"a: &a\n  b: *a\n":                 "more than 16 deep",
		"a: &a [1]\n<<: *a\n":              "merge keys",
		"a: &a [*a, *a, *a, *a, *a, *a]\n": "more than 16 deep",
	} {
		v, errs := ParseYAML("x.yaml", []byte(text))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		var got map[string]any
		check.ErrorSays(t, v.Decode(&got, nil).Err(), says)
	}
}

func TestValueItself(t *testing.T) {
	v, err := ParseJSON([]byte(`{"a":null,"b":{"x":1}}`))
	check.OK(t, err)
	var got struct {
		A *Value `json:"a"`
		B *Value `json:"b"`
		C *Value `json:"c"`
	}
	if errs := v.Decode(&got, nil); len(errs) > 0 {
		t.Fatal(errs)
	}
	if got.A == nil || !got.A.IsNull() || !got.B.IsObject() || got.C != nil {
		t.Errorf("%+v", got)
	}
}

// A text is written as the library would write it on its own, and reads back the same.
func TestTextsAreQuotedWhereNeeded(t *testing.T) {
	for _, text := range []string{
		"", "a", "y", "no", "off", "true", "False", "null", "~", "60s", "10", "1e3", "1:30", "0x10", ".5", "- a", "a: b", "a #b", "x-y_9",
		"client-000001", "falsey", "nothing", "trueish", "two\nlines", "naïve", "a.b.c/d", "abcdef ", " abcdef", "'quoted'", "2026-01-01", "<<", "=",
	} {
		var n yaml.Node
		check.OK(t, n.Encode(text))
		var want, got strings.Builder
		enc := yaml.NewEncoder(&want)
		enc.SetIndent(2)
		check.OK(t, enc.Encode(map[string]*yaml.Node{"k": &n}))
		check.OK(t, WriteYAML(&got, map[string]string{"k": text}))
		check.Equal(t, text, got.String(), want.String())
	}
}
