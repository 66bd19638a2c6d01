package gateway_test

import (
	"strings"
	"testing"
)

// TestOtherWritingsOfARefreshToken checks that each spelling of a refresh token that servers accept
// leads to its user.
func TestOtherWritingsOfARefreshToken(t *testing.T) {
	long := strings.Repeat("abcQ", 10)
	signed := jwtPart(`{"alg":"HS512"}`) + "." + jwtPart(`{"jti":"1"}`) + "." + long
	encrypted := jwtPart(`{"alg":"dir","enc":"A128GCM"}`) + "..AbcdAbcd-bcdAbcd.Y2lw-GVydGV4dGNpcGhlcnRleHQ"
	for name, tc := range map[string]struct{ issued, sent string }{
		"unused bits of the last character":  {signed + "abcQ-_abcQ", signed + "abcQ-_abcR"},
		"unused bits of three characters":    {signed + "abcQabc", signed + "abcQabd"},
		"unused bits of a part before":       {"ory_rt_" + long + "abc.abcd", "ory_rt_" + long + "abd.abcd"},
		"padding":                            {signed + "abcQabc", signed + "abcQabc%3D"},
		"characters of the other alphabet":   {signed + "abcQ-_ab", signed + "abcQ%2B%2Fab"},
		"hexadecimal digits of another case": {"def50200abcdef", "DEF50200abcDEF"},
		"without its prefix":                 {"ory_rt_" + long + ".abcd", long + ".abcd"},
		"dots behind it":                     {signed, signed + ".."},
		"dots in front of it":                {signed, "." + signed},
		"text behind the padding":            {signed, signed + "%3Dx1"},
		"another signature":                  {signed, signed[:len(signed)-8]},
		"spaces in the signature":            {signed, signed[:len(signed)-8] + "+++" + signed[len(signed)-8:]},
		"no base64 in the signature":         {signed, signed[:len(signed)-8] + "!~" + signed[len(signed)-8:]},
		"a part behind the signature":        {signed, signed + ".abc"},
		"a fifth part of one that is signed": {signed, signed + ".abc.abc"},
		"quotes":                             {signed, "%22" + signed + "%22"},
		"quotes and dots around no JWT":      {long, "%22" + long + "%22."},
		"decoded once more":                  {signed, "%2565yJ" + signed[3:]},
		"no JWT, decoded once more":          {long + "-x", long + "%252Dx"},
		"the tag of an encrypted one":        {encrypted + ".dGFn", encrypted + ".eHh4"},
		"an encrypted one, padded":           {encrypted + ".dGFn", encrypted + "%3D%3D.dGFn"},
		"an encrypted one, in other base64":  {encrypted + ".dGFn", strings.ReplaceAll(encrypted, "-", "%2B") + ".dGFn"},
		"skipped by decoders":                {long + "abcQ", long[:5] + "%21~" + long[5:] + "abcQ"},
		"spaces within":                      {long + "abcQ", long[:5] + "++" + long[5:] + "abcQ"},
		"text behind the padding of no JWT":  {long + "abcd", long + "abcd%3D%3Dx"},
		"a UUID without dashes":              {"123e4567-e89b-42d3-a456-426614174000", "123E4567E89B42D3A456426614174000"},
		"a UUID in braces":                   {"123e4567-e89b-42d3-a456-426614174000", "%7B123e4567-e89b-42d3-a456-426614174000%7D"},
		"a UUID as a URN":                    {"123e4567-e89b-42d3-a456-426614174000", "urn:uuid:123e4567-e89b-42d3-a456-426614174000"},
		"a UUID as a URN in upper case":      {"123e4567-e89b-42d3-a456-426614174000", "URN:Uuid:123e4567-e89b-42d3-a456-426614174000"},
		"a UUID with half of the prefix":     {"123e4567-e89b-42d3-a456-426614174000", "urn:{123e4567-e89b-42d3-a456-426614174000}"},
		"a UUID with the prefix twice":       {"123e4567-e89b-42d3-a456-426614174000", "urn:urn:uuid:uuid:123e4567-e89b-42d3-a456-426614174000"},
		"a UUID with the prefix inside":      {"123e4567-e89b-42d3-a456-426614174000", "123e4uuid:urn:567-e89b-42d3-a456-426614174000urn:"},
		"a UUID between other characters":    {"123e4567-e89b-42d3-a456-426614174000", "x123e4567-e89b-42d3-a456-426614174000y"},
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

// TestCharactersOfNoToken covers characters that no refresh token contains, and that some server
// may ignore.
func TestCharactersOfNoToken(t *testing.T) {
	w := newWorld(t, 1)
	w.upstream(issues("ada", "r1"))
	for _, form := range []string{
		"grant_type=refresh_token&refresh_token=r1%C2%A0", "grant_type=refresh_token&refresh_token=r%E2%80%8B1", "grant_type=refresh_token&refresh_token=r1%00",
		"grant_type=refresh_token&refresh_token=r1%7F", "grant_type=refresh_token&refresh_token=r1+", "grant_type=refresh_token&refresh_token=r1%0A",
		"grant_type=authorization_code&code=c%C3%A9", "grant_type=refresh_tok%C3%A9n&refresh_token=r1",
	} {
		w.wantStatus(form, form, 400)
	}
	w.wantCame(0)
}
