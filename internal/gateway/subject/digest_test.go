package subject_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"oauth-server/internal/gateway/subject"
)

// TestTokensThatDiffer checks that tokens of two users never have the same digest.
func TestTokensThatDiffer(t *testing.T) {
	e := base64.RawURLEncoding.EncodeToString
	header, direct := e([]byte(`{"alg":"HS256"}`)), e([]byte(`{"alg":"dir","enc":"A128GCM"}`))
	seen := map[subject.Digest]string{}
	for _, token := range []string{
		"1", "2", "12.3", "1.23", "123", "a-1-23", "a-12-3", "r:1:23", "r:12:3",
		header + "." + e([]byte(`{"jti":"a1"}`)) + ".c2ln", header + "." + e([]byte(`{"jti":"a2"}`)) + ".c2ln",
		header + "." + e([]byte(`{"jti":"a2"}`)), header + "..c2ln", header + "..c2lo", header,
		direct + "..aXYxaXYxaXYx.Y2lwaGVydGV4dA.dGFn", direct + "..aXYxaXYxaXYy.Y2lwaGVydGV4dA.dGFn", direct + "..aXYxaXYxaXYx.Y2lwaGVydGV4dB0.dGFn",
		direct + ".a2V5.aXYxaXYxaXYx.Y2lwaGVydGV4dA.dGFn",
		strings.Repeat("ab", 20) + "1", strings.Repeat("ab", 20) + "2", "a=" + strings.Repeat("x", 30), "a=" + strings.Repeat("y", 30),
	} {
		d := subject.DigestOf(token)
		if other, known := seen[d]; known && token != header+"."+e([]byte(`{"jti":"a2"}`)) { // that one is the same without its signature
			t.Errorf("%q and %q have the same digest", token, other)
		}
		seen[d] = token
	}
}

// TestWritingsOfTokens checks that a token of any bytes has one digest, whatever its alphabet,
// padding and unused bits.
func TestWritingsOfTokens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		token := rapid.SliceOfN(rapid.Byte(), 20, 60).Draw(t, "token")
		standard, url := base64.StdEncoding.EncodeToString(token), base64.RawURLEncoding.EncodeToString(token)
		want := subject.DigestOf(url)
		writings := []string{standard, strings.TrimRight(standard, "="), base64.URLEncoding.EncodeToString(token), url + ".", `"` + url + `"`}
		if at := rapid.IntRange(0, len(url)-1).Draw(t, "at"); url[at] == '-' {
			writings = append(writings, url[:at]+"%2D"+url[at+1:])
		}
		for _, other := range writings {
			if subject.DigestOf(other) != want {
				t.Fatalf("%s and %s", url, other)
			}
		}
	})
}
