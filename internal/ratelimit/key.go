package ratelimit

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"strings"
)

// Key identifies a counted user of a client. If Username is empty, it identifies the client itself
// (client_credentials).
type Key struct {
	ClientID string
	Username string
}

// Internal is the prefix of the ClientID of keys that do not count requests of a client. No
// client_id contains a space, so there is no conflict. [Counters.Top] omits these keys.
const Internal = "internal "

// TotalUser is the Username of the key that counts a client over all its users, see [Policy.Total].
// No username begins with a space, so there is no conflict.
const TotalUser = " total"

// Total returns the key that counts the client of k over all its users.
func (k Key) Total() Key { return Key{ClientID: k.ClientID, Username: TotalUser} }

// isTotal reports whether k counts a client over all its users.
func (k Key) isTotal() bool { return k.Username == TotalUser }

// SourceUser is the prefix of the Username of keys that count a client from one source address, see
// [Policy.Source].
const SourceUser = " source "

// Source returns the key that counts the client of k from the source address. The address must have
// the format of limiter.SourceOf.
func (k Key) Source(address string) Key {
	return Key{ClientID: k.ClientID, Username: SourceUser + address}
}

// SourceAddress returns the source address of a key made by [Key.Source]. It returns false for
// other keys.
func (k Key) SourceAddress() (string, bool) { return strings.CutPrefix(k.Username, SourceUser) }

func (k Key) isSource() bool { return strings.HasPrefix(k.Username, SourceUser) }

// maxKeySize bounds the memory of a key. Longer names are replaced by digests.
const maxKeySize = 255

// bounded returns the key that k is counted under: k itself, or its digests if the two names
// together are longer than maxKeySize.
func (k Key) bounded() Key {
	if len(k.ClientID)+len(k.Username) <= maxKeySize {
		return k
	}
	return k.digests()
}

func (k Key) digests() Key {
	return Key{ClientID: shorten(k.ClientID), Username: shorten(k.Username)}
}

// Bounded returns the key under which k is counted and banned: k itself unless its names are very long.
func (k Key) Bounded() Key { return k.bounded() }

// shorten returns s, or its SHA-256 in hexadecimal if s is longer than half of maxKeySize.
func shorten(s string) string {
	if len(s) <= maxKeySize/2 {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// hash is a keyed 128-bit hash of a key. Two keys with equal hashes are treated as the same key, so
// a decision never compares names. Two given keys collide with a probability of at most 2^-64. They
// then share one limit, and neither gets more than it.
type hash struct{ hi, lo uint64 }

// hashKey is the random hash key of one [Counters], so clients cannot choose names that collide. It
// has one word for each word of the longest pair of names, including the two lengths.
type hashKey [maxKeySize/8 + 5]uint64

func newHashKey() (k hashKey) {
	var b [8 * len(k)]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	for i := range k {
		k[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return k
}

// hash returns the hash of a key. It is NH, the universal hash of UMAC (Black, Halevi, Krawczyk,
// Krovetz and Rogaway, 1999; RFC 4418, section 5.2) with 64-bit words, followed by a bijective mix,
// so that any of its bits can serve as an index.
func (k *hashKey) hash(key Key) hash { return k.sum(key).mixed() }

// sum returns NH: the sum, modulo 2^128, of the products of neighbouring words, after a word of the
// hash key was added to each.
func (k *hashKey) sum(key Key) (h hash) {
	h.add(uint64(len(key.ClientID))+k[0], uint64(len(key.Username))+k[1])
	i := h.text(k, 2, key.ClientID)
	h.text(k, i, key.Username)
	return h
}

// mixed returns the hash after two rounds of a Feistel network.
func (h hash) mixed() hash {
	const odd = 0x9e3779b97f4a7c15
	x := h.lo * odd
	h.hi ^= x ^ x>>32
	x = h.hi * odd
	h.lo ^= x ^ x>>32
	return h
}

// text adds the words of s to the sum, in pairs, using the words of the hash key from i on. It
// returns the index of the next unused word of the hash key.
func (h *hash) text(k *hashKey, i int, s string) int {
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
func (h *hash) add(a, b uint64) {
	hi, lo := bits.Mul64(a, b)
	var carry uint64
	h.lo, carry = bits.Add64(h.lo, lo, 0)
	h.hi, _ = bits.Add64(h.hi, hi, carry)
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
