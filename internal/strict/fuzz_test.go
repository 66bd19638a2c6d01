package strict

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/check"
)

// fuzzed has a field of every kind.
type fuzzed struct {
	Name  string            `json:"name"`
	Count int               `json:"count"`
	Share float64           `json:"share"`
	On    bool              `json:"on"`
	List  []string          `json:"list,omitempty"`
	Named map[string]fuzzed `json:"named,omitempty"`
}

// FuzzJSON: accepted input is one value that encoding/json reads in the same way, and an empty
// merge patch leaves the value unchanged.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`{"name":"a","count":1}`, `{"named":{"a":{}}}`, "[[[", `{"count":1e400}`, `{"a":1,"a":2}`, `{"\u0061":1,"a":2}`, `1 2`, `"\ud800"`, strings.Repeat("[", 17),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := ParseJSON(b)
		if err != nil {
			return
		}
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		var want any
		if err := d.Decode(&want); err != nil || !json.Valid(b) {
			t.Fatalf("%q is accepted, and not by encoding/json: %v", b, err)
		}
		if diff := cmp.Diff(scalarsAsText(want), plain(v)); diff != "" {
			t.Errorf("%q (-encoding/json +strict):\n%s", b, diff)
		}
		if name, twice := repeated(v); twice {
			t.Errorf("%q is accepted with %q twice in one object", b, name)
		}
		var into fuzzed
		_ = v.Decode(&into, nil)
		_ = MergePatch(v, v).Decode(&into, nil)
		if v.IsObject() {
			if diff := cmp.Diff(plain(v), plain(MergePatch(v, parse(t, "{}")))); diff != "" {
				t.Errorf("%q with an empty patch:\n%s", b, diff)
			}
		}
	})
}

// repeated returns a name that occurs twice in an object inside v.
func repeated(v *Value) (name string, twice bool) {
	parts, seen := v.items, map[string]bool{}
	for _, f := range v.fields {
		if seen[f.name.text] {
			return f.name.text, true
		}
		seen[f.name.text] = true
		parts = append(parts, f.value)
	}
	for _, part := range parts {
		if name, twice = repeated(part); twice {
			return name, true
		}
	}
	return "", false
}

// scalarsAsText converts a value of encoding/json to the form of [plain].
func scalarsAsText(v any) any {
	switch v := v.(type) {
	case nil:
		return nil
	case map[string]any:
		for name := range v {
			v[name] = scalarsAsText(v[name])
		}
		return v
	case []any:
		for i := range v {
			v[i] = scalarsAsText(v[i])
		}
		return v
	case bool:
		return map[bool]string{true: "true", false: "false"}[v]
	case json.Number:
		_, text := readNumber(v.String())
		return text
	default:
		return v
	}
}

// FuzzYAML: no document makes the parser panic or use unbounded memory, and every problem names its
// file.
func FuzzYAML(f *testing.F) {
	for _, seed := range []string{
		"name: a\ncount: 1", "&a listen: *a", "a: &x [*x]", "named: {a: {count: x}}", "---\na: 1\n---\nb: 2", "? [a]\n: b", "!!binary x", "a: 2026-01-01",
		"a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\nlist: [*c,*c]",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, problems := ParseYAML("f.yaml", b)
		if v == nil && len(problems) == 0 {
			v = &Value{file: "f.yaml", line: 1}
		}
		if v != nil {
			var into fuzzed
			problems = append(problems, v.Decode(&into, map[string]string{})...)
		}
		for _, p := range problems {
			if !strings.HasPrefix(p.Origin, "f.yaml") {
				t.Errorf("%v comes from %q", p, p.Origin)
			}
			if !utf8.ValidString(p.Short().Error()) && utf8.Valid(b) {
				t.Errorf("%q is not UTF-8", p.Error())
			}
		}
	})
}

// FuzzTextAsYAML: any text written as YAML reads back as the same text.
func FuzzTextAsYAML(f *testing.F) {
	for _, seed := range []string{"", "null", "a: b", "0x10", "2026-01-01", " x ", "- a", "\u2028", "\x7f\x01", "'", "|\n a", "#", "<<", "\ufeff", "yes", "\ta\n", "\n\ta\n", "a\n\tb"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		if !utf8.ValidString(name) || !utf8.ValidString(text) {
			return
		}
		want := fuzzed{Name: text, List: []string{text}, Named: map[string]fuzzed{name: {}}}
		var out strings.Builder
		check.OK(t, WriteYAML(&out, want))
		v, problems := ParseYAML("f.yaml", []byte(out.String()))
		if v == nil {
			t.Fatalf("%v in\n%s", problems, out.String())
		}
		var got fuzzed
		if problems = v.Decode(&got, nil); len(problems) > 0 {
			t.Fatalf("%v in\n%s", problems, out.String())
		}
		_, known := got.Named[name]
		if got.Name != text || len(got.List) != 1 || got.List[0] != text || !known {
			t.Errorf("%q and %q come back as %+v from\n%s", name, text, got, out.String())
		}
	})
}
