package fielderr_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"oauth-server/internal/check"
	"oauth-server/internal/strict/fielderr"
)

func TestErrorIsOneLine(t *testing.T) {
	for want, e := range map[string]fielderr.Error{
		"listen: is empty (oauth.yaml:3)": {Path: "listen", Message: "is empty", Origin: "oauth.yaml:3"},
		"listen: is empty":                {Path: "listen", Message: "is empty"},
		"must be an object":               {Message: "must be an object"},
	} {
		check.Equal(t, "error", e.Error(), want)
	}
}

func TestErrorsQuoteNoMoreThanALine(t *testing.T) {
	for name, endless := range map[string]fielderr.Error{
		"value": {Path: "listen", Message: strings.Repeat("é", 1000)},
		"field": {Path: strings.Repeat("x", 1000), Message: "unknown field"},
	} {
		if line := endless.Error(); len(line) > 500 || !utf8.ValidString(line) {
			t.Errorf("%s: %d bytes: %s", name, len(line), line)
		}
	}
}

func TestNoErrorsAreNil(t *testing.T) {
	var es fielderr.Errors
	if err := es.Err(); err != nil {
		t.Errorf("Err() = %v, want nil", err)
	}
	es.Add("mode", "%q is none", "x")
	wrapped := fmt.Errorf("wrapped: %w", es.Err())
	check.Equal(t, "Of()", fielderr.Of(wrapped), es)
	if wrapped.Error() != `wrapped: mode: "x" is none` || fielderr.Of(fmt.Errorf("no")) != nil {
		t.Errorf("%v; %v", wrapped, fielderr.Of(fmt.Errorf("no")))
	}
}

func TestErrReturnsTheFirst(t *testing.T) {
	var es fielderr.Errors
	for i := range fielderr.Most {
		es.Add(fielderr.Item("list", i), "is wrong")
	}
	check.Equal(t, "as many errors as there may be", error(es), es.Err())
	es.Add("list[100]", "is wrong")
	es.Add("list[101]", "is wrong")
	got := fielderr.Of(es.Err())
	want := append(slices.Clone(es[:fielderr.Most]), fielderr.Error{Message: "more problems are not shown"})
	check.Equal(t, "more", got, want)
	if es[fielderr.Most].Path != "list[100]" {
		t.Error("Err() changed the errors themselves")
	}
	check.Equal(t, "of those", fielderr.Of(got.Err()), want)
}

func TestUnder(t *testing.T) {
	for _, tt := range []struct{ prefix, path, want string }{
		{"a.b", "[0].c", "a.b[0].c"},
		{"", "c", "c"},
		{"a", "b", "a.b"},
		{"a", "", "a"},
	} {
		es := fielderr.Errors{{Path: tt.path, Message: "wrong"}}
		if got := es.Under(tt.prefix)[0].Path; got != tt.want || es[0].Path != tt.path {
			t.Errorf("%q under %q is %q, want %q", tt.path, tt.prefix, got, tt.want)
		}
	}
}

func TestPaths(t *testing.T) {
	for want, got := range map[string]string{
		"a":                        fielderr.Join("", "a"),
		"a.b-c_9":                  fielderr.Join("a", "b-c_9"),
		`clients["app.example"]`:   fielderr.Join("clients", "app.example"),
		`clients[""]`:              fielderr.Join("clients", ""),
		"rate_limit.default.u[12]": fielderr.Item("rate_limit.default.u", 12),
	} {
		check.Equal(t, "path", got, want)
	}
}

// What could not be read is not reported again for what it is instead.
func TestAddUnreported(t *testing.T) {
	es := fielderr.Errors{{Path: "user[0]"}, {Path: "mode"}, {Path: ""}}
	es.AddUnreported(fielderr.Errors{{Path: "user[0].window"}, {Path: "user[0]"}, {Path: "modes"}, {Path: "user"}, {Path: "user"}})
	var paths []string
	for _, e := range es {
		paths = append(paths, e.Path)
	}
	check.Equal(t, "paths", paths, []string{"user[0]", "mode", "", "modes", "user", "user"})
}
