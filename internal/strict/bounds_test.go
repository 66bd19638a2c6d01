package strict_test

import (
	"fmt"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/strict"
	"oauth-server/internal/strict/fielderr"
)

// Decoding stops soon after the maximum number of reported problems.
func TestDecodeStopsAfterManyProblems(t *testing.T) {
	var unknown, aliases strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&unknown, "x%d: 1, ", i)
		fmt.Fprintf(&aliases, "a%d: *a, ", i)
	}
	wrong := "[" + strings.Repeat("5, ", 30_000) + "5]"
	for name, in := range map[string]string{
		"wrong types":               `{"list": ` + wrong + `}`,
		"unknown fields":            `{` + unknown.String() + `}`,
		"unknown fields of aliases": "{named: {a: &a {" + unknown.String() + "}, " + aliases.String() + "}}",
		"fields given twice":        "{" + strings.Repeat("name: a, ", 1000) + "}",
		"names that are none":       "{" + strings.Repeat("[]: a, ", 1000) + "}",
	} {
		v, errs := strict.ParseYAML("f", []byte(in))
		if errs != nil {
			t.Fatalf("%s: %v", name, errs)
		}
		expectCut(t, name, v.Decode(&document{}, map[string]string{}))
	}
	v, err := strict.ParseJSON([]byte(`{"list": ` + wrong + `}`))
	check.OK(t, err)
	expectCut(t, "JSON", v.Decode(&document{}, nil))
}

func expectCut(t *testing.T, name string, errs fielderr.Errors) {
	t.Helper()
	check.Equal(t, name+": errors", len(errs), fielderr.Most+1)
	shown := strings.Split(errs.Err().Error(), "\n")
	if last := shown[len(shown)-1]; len(shown) != fielderr.Most+1 || last != "more problems are not shown" {
		t.Errorf("%s: %d lines, the last: %s", name, len(shown), last)
	}
}

// A few aliases of aliases describe more than a million values.
func TestDecodeIsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := byte('1'); i < '8'; i++ {
		last := "*a" + string(i-1)
		b.WriteString("a" + string(i) + ": &a" + string(i) + " [" + strings.Repeat(last+", ", 9) + last + "]\n")
	}
	v, errs := strict.ParseYAML("f", []byte(b.String()))
	check.OK(t, errs.Err())
	var d struct {
		A0, A1, A2, A3, A4, A5, A6 any
		A7                         [][][][][][][][]string `json:"a7"`
	}
	errs = v.Decode(&d, nil)
	if !strings.Contains(errs.Error(), "with its aliases, the file has more than 1048576 values (f:1)") {
		t.Errorf("%d errors, the first: %v", len(errs), errs[0])
	}
}

// The paths of many values can contain one long name.
func TestLongNamesAreCutInPaths(t *testing.T) {
	v, errs := strict.ParseYAML("f", []byte("named:\n  ? "+strings.Repeat("x", 100_000)+"\n  : {name: a}\n"))
	var d document
	origins := map[string]string{}
	if errs = append(errs, v.Decode(&d, origins)...); errs != nil {
		t.Fatal(errs)
	}
	for path := range origins {
		if len(path) > 500 {
			t.Errorf("a path has %d bytes", len(path))
		}
	}
	for name := range d.Named {
		check.Equal(t, "bytes of the name", len(name), 100_000)
	}
}
