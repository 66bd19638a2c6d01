package slab

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"oauth-server/internal/ratelimit"
)

// TestHash computes the hash of UMAC by its definition: the sum of the products of neighbouring
// words, after a word of the key was added to each.
func TestHash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := NewHashKey()
		k := ratelimit.Key{ClientID: rapid.StringN(0, -1, 120).Draw(t, "client"), Username: rapid.StringN(0, -1, 120).Draw(t, "user")}
		words := []uint64{uint64(len(k.ClientID)), uint64(len(k.Username))}
		for _, s := range []string{k.ClientID, k.Username} {
			for ; len(s) > 16; s = s[16:] {
				words = append(words, le(s[:8]), le(s[8:16]))
			}
			switch {
			case len(s) >= 8:
				words = append(words, le(s[:8]), le(s[len(s)-8:]))
			case len(s) >= 4:
				words = append(words, le(s[:4]), le(s[len(s)-4:]))
			case len(s) > 0:
				words = append(words, le(s[:1]+s[len(s)/2:][:1]+s[len(s)-1:]), 0)
			}
		}
		want := new(big.Int)
		for i := 0; i < len(words); i += 2 {
			a, b := new(big.Int).SetUint64(words[i]+key[i]), new(big.Int).SetUint64(words[i+1]+key[i+1])
			want.Add(want, a.Mul(a, b))
		}
		want.Mod(want, new(big.Int).Lsh(big.NewInt(1), 128))
		h := key.sum(k)
		got := new(big.Int).SetUint64(h.Hi)
		got.Lsh(got, 64).Or(got, new(big.Int).SetUint64(h.Lo))
		if want.Cmp(got) != 0 {
			t.Fatalf("hash of %q is %x, want %x", k, got, want)
		}
	})
}

// le reads up to eight bytes as a little-endian integer.
func le(s string) (w uint64) {
	for i := range len(s) {
		w |= uint64(s[i]) << (8 * i)
	}
	return w
}
