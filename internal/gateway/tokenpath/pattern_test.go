package tokenpath

import (
	"errors"
	"testing"
)

func TestParseRefuses(t *testing.T) {
	for _, p := range []string{
		"", "token", "*", "/token/", "/a//token", "/a/../token", "/token?x", "/token#x", "/token;x", `/a\token`, "/%74oken",
		"/realm*/token", "/a/**/token", "/***/token", "/*x", // these would match no path but one with a *
		"/**", // and this one every path
	} {
		if got, err := Parse(p); !errors.Is(err, ErrMalformed) {
			t.Errorf("Parse(%q) = %q, %v, want ErrMalformed", p, got, err)
		}
	}
}

func TestMatch(t *testing.T) {
	for _, tc := range []struct {
		pattern, path string
		want          bool
	}{
		{"/token", "/token", true},
		{"/token", "/TOKEN/", true},
		{"/token", "/x/..;a=b/token", true},
		{"/token", `/x\..\token;a`, true},
		{"/token", "//./token", true},
		{"/token", "/tokens", false},
		{"/token", "/token/x", false},
		{"/token", "/", false},
		{"/", "/", true},
		{"/*/token", "/a/token", true},
		{"/*/token", "/token", false},
		{"/*/token", "/a/b/token", false},
		{"/a/token", "/token", false},
		{"/**/o/token", "/o/token", true},
		{"/**/o/token", "/a/O/token/", true},
		{"/**/o/token", "/a/b/o/token;x", true},
		{"/**/o/token", "//host/a/o/token", true},
		{"/**/o/token", "/token", false},
		{"/**/o/token", "/o/token/x", false},
		{"/**/o/token", "/xo/token", false},
		{"/**/*/token", "/a/b/token", true},
		{"/**/*/token", "/token", false},
	} {
		p, err := Parse(tc.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Match(tc.path); got != tc.want {
			t.Errorf("%s: Match(%q) = %v", tc.pattern, tc.path, got)
		}
	}
}
