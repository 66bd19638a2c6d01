package tokenpath

import (
	"errors"
	"net/url"
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
		{"/a/token", "/a//../token", true},
		{"/token", "/token/..;/..", true},
		{"/token", "/token/x..", false},
		{"/token", "/..x/token;../y", false},
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

// TestMatchURL: what is encoded may be read before parameters are cut off, or after it.
func TestMatchURL(t *testing.T) {
	for target, want := range map[string]bool{
		"/realms/a/token":                  true,
		"/realms/a%2ftoken":                true,
		"/realms/a;x%2fy/token":            true,
		"/realms/a;x%2F..%2Fy/token":       true,
		"/realms/a/token;x%2fy":            true,
		"/realms;%2f/%61/%74oken":          true,
		"/realms%2fa;x%2fy/token":          true,
		"//h;%2f/realms/a/token":           true,
		"/realms/a/%2e/token%3bx":          true,
		"/realms/a/userinfo;x%2ftoken":     false,
		"/realms/a/token/x":                false,
		"/realms/a/userinfo%3bx%2fy/":      false,
		"/realms/a%2fb/userinfo;x%2ftoken": false,
	} {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Parse("/realms/*/token")
		if err != nil {
			t.Fatal(err)
		}
		if got := p.MatchURL(u); got != want {
			t.Errorf("MatchURL(%q) = %v", target, got)
		}
	}
}
