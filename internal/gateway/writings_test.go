package gateway_test

import (
	"strings"
	"testing"
)

// TestOtherWritingsOfARefreshToken: servers that decode a refresh token take several writings of it. Each leads to its user.
func TestOtherWritingsOfARefreshToken(t *testing.T) {
	long := strings.Repeat("abcQ", 10)
	signed := jwtPart(`{"alg":"HS512"}`) + "." + jwtPart(`{"jti":"1"}`) + "." + long
	for name, tc := range map[string]struct{ issued, sent string }{
		"unused bits of the last character":  {signed + "abcQ-_abcQ", signed + "abcQ-_abcR"},
		"unused bits of three characters":    {signed + "abcQabc", signed + "abcQabd"},
		"unused bits of a part before":       {"ory_rt_" + long + "abc.abcd", "ory_rt_" + long + "abd.abcd"},
		"padding":                            {signed + "abcQabc", signed + "abcQabc%3D"},
		"characters of the other alphabet":   {signed + "abcQ-_ab", signed + "abcQ%2B%2Fab"},
		"hexadecimal digits of another case": {"def50200abcdef", "DEF50200abcDEF"},
		"without its prefix":                 {"ory_rt_abcQabc.abcd", "abcQabc.abcd"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.upstream(issues("ada", tc.issued))
			w.wantStatus("code", "grant_type=authorization_code&code=c", 200)
			w.wantStatus("as issued", "grant_type=refresh_token&refresh_token="+tc.issued, 429)
			w.wantStatus("otherwise", "grant_type=refresh_token&refresh_token="+tc.sent, 429)
		})
	}
}
