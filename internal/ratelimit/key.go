package ratelimit

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
)

// Key names what is counted: a user of a client, or the client itself where
// Username is empty (client_credentials).
type Key struct {
	ClientID string
	Username string
}

// maxKeySize bounds the memory of a key. A longer username is counted under
// its digest instead.
const maxKeySize = 256

// bounded returns the key under which k is counted.
func (k Key) bounded() Key {
	if len(k.ClientID)+len(k.Username) <= maxKeySize {
		return k
	}
	return Key{ClientID: shorten(k.ClientID), Username: shorten(k.Username)}
}

func shorten(s string) string {
	if len(s) <= maxKeySize/2 {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// hash mixes both parts with a seed of this process, so that nobody outside can
// choose names that collide.
func (k Key) hash(seed maphash.Seed) uint64 {
	h := maphash.String(seed, k.ClientID)
	if k.Username != "" {
		h = (h ^ 0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd
		h ^= maphash.String(seed, k.Username)
	}
	return h
}
