package slab

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"

	"oauth-server/internal/ratelimit"
)

// Hash is a keyed 128-bit hash of a key. Two keys with equal hashes are treated as the same key, so
// a decision never compares names. Two given keys collide with a probability of at most 2^-64. They
// then share one limit, and neither gets more than it.
type Hash struct{ Hi, Lo uint64 }

// HashKey is a random key of hashes, so clients cannot choose names that collide. It has
// one word for each word of the longest pair of names, including the two lengths.
type HashKey [ratelimit.MaxKeySize/8 + 5]uint64

// NewHashKey returns a random key.
func NewHashKey() (k HashKey) {
	var b [8 * len(k)]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	for i := range k {
		k[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return k
}

// Hash returns the hash of a key. It is NH, the universal hash of UMAC (Black, Halevi, Krawczyk,
// Krovetz and Rogaway, 1999; RFC 4418, section 5.2) with 64-bit words, followed by a bijective mix,
// so that any of its bits can serve as an index.
func (k *HashKey) Hash(key ratelimit.Key) Hash { return k.sum(key).mixed() }

// sum returns NH: the sum, modulo 2^128, of the products of neighbouring words, after a word of the
// hash key was added to each.
func (k *HashKey) sum(key ratelimit.Key) (h Hash) {
	h.add(uint64(len(key.ClientID))+k[0], uint64(len(key.Username))+k[1])
	i := h.text(k, 2, key.ClientID)
	h.text(k, i, key.Username)
	return h
}

// mixed returns the hash after two rounds of a Feistel network.
func (h Hash) mixed() Hash {
	const odd = 0x9e3779b97f4a7c15
	x := h.Lo * odd
	h.Hi ^= x ^ x>>32
	x = h.Hi * odd
	h.Lo ^= x ^ x>>32
	return h
}

// text adds the words of s to the sum, in pairs, using the words of the hash key from i on. It
// returns the index of the next unused word of the hash key.
func (h *Hash) text(k *HashKey, i int, s string) int {
	for ; len(s) > 16; s = s[16:] {
		h.add(word(s)+k[i], word(s[8:])+k[i+1])
		i += 2
	}
	switch n := len(s); {
	case n >= 8: // the two words overlap; the length makes that unambiguous
		h.add(word(s)+k[i], word(s[n-8:])+k[i+1])
	case n >= 4:
		h.add(half(s)+k[i], half(s[n-4:])+k[i+1])
	case n > 0: // bytes may be the same
		h.add((uint64(s[0])|uint64(s[n/2])<<8|uint64(s[n-1])<<16)+k[i], k[i+1])
	default:
		return i
	}
	return i + 2
}

// add adds the product of a and b.
func (h *Hash) add(a, b uint64) {
	hi, lo := bits.Mul64(a, b)
	var carry uint64
	h.Lo, carry = bits.Add64(h.Lo, lo, 0)
	h.Hi, _ = bits.Add64(h.Hi, hi, carry)
}

// word returns the first eight bytes of s as a little-endian integer. It compiles to one load.
func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// half returns the first four bytes of s as a little-endian integer. It compiles to one load.
func half(s string) uint64 {
	_ = s[3]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24
}

// Parts returns the 96 bits of a hash that a counter keeps. The number of the shard implies some of
// the other bits.
func (h Hash) Parts() [3]uint32 {
	return [3]uint32{uint32(h.Hi), uint32(h.Lo), uint32(h.Lo >> 32)} //nolint:gosec // halves are meant
}
