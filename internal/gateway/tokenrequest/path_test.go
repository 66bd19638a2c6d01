package tokenrequest

import (
	"errors"
	"net/url"
	"testing"

	"oauth-server/internal/check"
)

func TestParseRefuses(t *testing.T) {
	for _, p := range []string{
		"", "token", "*", "/token/", "/a//token", "/a/../token", "/token?x", "/token#x", "/token;x", `/a\token`, "/%74oken",
		"/realm*/token", "/a/**/token", "/***/token", "/*x", // these would match only paths that contain a *
		"/**", // and this one would match every path
	} {
		if got, err := ParsePath(p); !errors.Is(err, ErrMalformedPath) {
			t.Errorf("ParsePath(%q) = %q, %v, want ErrMalformedPath", p, got, err)
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
		{"/issue", "/iſſue", true},
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
		p, err := ParsePath(tc.pattern)
		check.OK(t, err)
		check.Equal(t, tc.pattern+" matches "+tc.path, p.Match(tc.path), tc.want)
	}
}

// TestMatchURL covers servers that decode a path before or after they remove parameters.
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
		check.OK(t, err)
		p, err := ParsePath("/realms/*/token")
		check.OK(t, err)
		check.Equal(t, "matches "+target, p.MatchURL(u), want)
	}
}

// TestNearURL covers other paths that routers lead to the token endpoint.
func TestNearURL(t *testing.T) {
	for _, tc := range []struct {
		pattern string
		near    []string
		far     []string
	}{
		{
			"/oauth/token",
			[]string{
				"/oauth/token/x", "/oauth/token/introspect", "/oauth/token.json", "/OAuth/Token.JSON", "/oauth/token%2ejson", "/oauth/token.php/x/y",
				"/oauth/token%20", "/oauth/token%00", "/oauth/token%0a", "/oauth/token.", "/oauth/token~", "/oauth/token%3fx", "/oauth/token%2fx",
				"/oauth/token;a/x", "/oauth//token//x", "/oauth.php/token", "/oauth%252ftoken%252fx", "/oauth/%2574oken", "/oauth/token::$DATA",
				"/index.php/oauth/token", "/app_dev.php/oauth/token/x", "/a.b/index.php/oauth/token", "/oauth/index.php/token", "/web/app_dev.php/oauth/token", "/a/b/index.php/oauth/token/x", "//host/index.php/oauth/token",
				"/index.php?r=oauth/token", "/?q=oauth%2Ftoken", "/?a=b&route=/oauth/token/", "/index.php?/oauth/token", "/?oauth=token",
			},
			[]string{
				"/oauth/tokens", "/oauth/token-x", "/oauth/token_info", "/oauth/revoke", "/oauth", "/", "/x/oauth/token/y", "/oauthx/token/x",
				"/oauth/x/token", "/index.php/x/oauth/token", "/?r=oauth/tokens", "/index.php?r=x/oauth/token", "/oauth?token", "/%zz?q=%zz",
			},
		},
		{"/realms/*/token", []string{"/realms/a/token/introspect", "/realms/a.b/token.x", "/x.y/realms/a/token"}, []string{"/realms/token/x", "/realms/a/b/token/x"}},
		{"/*/token", []string{"/index.php/a/token", "/a/token/x", "/a.b/token.x"}, []string{"/token/x"}},
		{"/**/o/token", []string{"/a/o/token/x", "/o/token.json", "/a/index.php/o/token"}, []string{"/o/a/token", "/token/x"}},
		{"/", nil, []string{"/x", "/x?a=b"}},
	} {
		p, err := ParsePath(tc.pattern)
		check.OK(t, err)
		for i, target := range append(tc.near, tc.far...) {
			u, err := url.ParseRequestURI(target)
			if err != nil {
				continue // no request has it
			}
			if got, want := p.NearURL(u) || p.MatchURL(u), i < len(tc.near); got != want {
				t.Errorf("%s: %q is near: %v", tc.pattern, target, got)
			}
		}
	}
}
