package secret

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
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
		require.NoError(t, err)
		require.Len(t, raw, Bits/8)
		require.False(t, seen[s], "the same secret twice")
		seen[s] = true
	}
}

func TestDigestMatches(t *testing.T) {
	d := DigestOf("s3cret")
	for presented, want := range map[string]bool{
		"s3cret": true, "s3cret\x00": false, "S3cret": false, "": false, "s3cre": false,
	} {
		require.Equal(t, want, d.Matches(presented), "%q", presented)
	}
	require.False(t, Digest{}.Matches(""), "no digest matches nothing")
}

func TestDigestText(t *testing.T) {
	for name, d := range map[string]Digest{"zero": {}, "set": DigestOf("x")} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(d)
			require.NoError(t, err)
			var back Digest
			require.NoError(t, json.Unmarshal(text, &back))
			require.Equal(t, d, back)
		})
	}
	for name, text := range map[string]string{
		"short": "abcd", "not hexadecimal": "zz" + DigestOf("x").String()[2:], "long": DigestOf("x").String() + "00", "odd": "abc",
	} {
		t.Run(name, func(t *testing.T) {
			d := DigestOf("before")
			require.Error(t, d.UnmarshalText([]byte(text)))
			require.Equal(t, DigestOf("before"), d, "a failed read changes nothing")
		})
	}
}
