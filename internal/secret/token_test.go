package secret

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

func ExampleDigest_Matches() {
	token := New()
	stored := DigestOf(token)
	fmt.Println(stored.Matches(token), stored.Matches(token+"\x00"))
	// Output: true false
}

func TestNewHas256Bits(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		s := New()
		raw, err := base64.RawURLEncoding.DecodeString(s)
		if err != nil || len(raw) != Bits/8 {
			t.Fatalf("New() = %q, %d bytes (%v), want %d", s, len(raw), err, Bits/8)
		}
		if seen[s] {
			t.Fatalf("New() = %q a second time", s)
		}
		seen[s] = true
	}
}

func TestDigestMatches(t *testing.T) {
	d := DigestOf("s3cret")
	for presented, want := range map[string]bool{
		"s3cret": true, "s3cret\x00": false, "S3cret": false, "": false, "s3cre": false,
	} {
		check.Equal(t, "matches "+presented, d.Matches(presented), want)
	}
	if (Digest{}).Matches("") {
		t.Error("the zero Digest matches the empty secret")
	}
}

func TestDigestText(t *testing.T) {
	for name, d := range map[string]Digest{"zero": {}, "set": DigestOf("x")} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(d)
			check.OK(t, err)
			var back Digest
			if err := json.Unmarshal(text, &back); err != nil || back != d {
				t.Errorf("%s reads back as %v (%v), want %v", text, back, err, d)
			}
		})
	}
	for name, text := range map[string]string{
		"short": "abcd", "not hexadecimal": "zz" + DigestOf("x").String()[2:], "long": DigestOf("x").String() + "00", "odd": "abc",
	} {
		t.Run(name, func(t *testing.T) {
			d := DigestOf("before")
			if err := d.UnmarshalText([]byte(text)); err == nil {
				t.Errorf("UnmarshalText(%q) reads %v", text, d)
			}
			if d != DigestOf("before") {
				t.Error("a failed read changes the digest")
			}
		})
	}
}

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

// TestStamps checks which carried stamps a record accepts.
func TestStamps(t *testing.T) {
	first, other := NewStamp(), NewStamp()
	second := first.Revoked()
	if second.ID != first.ID || len(first.ID) != 22 || first.Count != 1 || second.Count != 2 || first.ID == other.ID {
		t.Fatalf("%+v, then %+v, and %+v", first, second, other)
	}
	for _, tt := range []struct {
		name             string
		carried, record  Stamp
		accepted, behind bool
	}{
		{"the same", first, first, true, false},
		{"revoked since", first, second, false, false},
		{"revoked before, not known yet", second, first, true, true},
		{"of another", other, first, false, false},
		{"of another, revoked", other.Revoked(), first, false, false},
		{"none", Stamp{}, first, false, false},
	} {
		if accepted, behind := tt.record.Accepts(tt.carried), tt.record.Behind(tt.carried); accepted != tt.accepted || behind != tt.behind {
			t.Errorf("%s: accepted %v, behind %v", tt.name, accepted, behind)
		}
	}
}
