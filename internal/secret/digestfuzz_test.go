package secret

import (
	"strings"
	"testing"
)

// FuzzDigestText: a digest is parsed only from its hexadecimal form, and a secret matches only its
// own digest.
func FuzzDigestText(f *testing.F) {
	f.Add("", "secret")
	f.Add(DigestOf("secret").String(), "secret")
	f.Add(strings.Repeat("0", 64), "")
	f.Add(strings.Repeat("F", 64), "secret\x00")
	f.Add(strings.Repeat("é", 32), "x")
	f.Fuzz(func(t *testing.T, text, presented string) {
		var d Digest
		if err := d.UnmarshalText([]byte(text)); err != nil {
			return
		}
		again, err := d.MarshalText()
		if err != nil || string(again) != strings.ToLower(text) && !d.IsZero() {
			t.Errorf("%q is written as %q: %v", text, again, err)
		}
		if own := DigestOf(presented); d.Matches(presented) != (d == own) || !own.Matches(presented) || own.Matches(presented+"\x00") {
			t.Errorf("%q matches %q: %v", presented, text, d.Matches(presented))
		}
	})
}
