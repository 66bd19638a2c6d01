package ratelimit

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Key identifies a counted user of a client. If Username is empty, it identifies the client itself
// (client_credentials).
type Key struct {
	ClientID string
	Username string
}

// Internal is the prefix of the ClientID of keys that do not count requests of a client. No
// client_id contains a space, so there is no conflict. Top in package counting omits
// these keys.
const Internal = "internal "

// TotalUser is the Username of the key that counts a client over all its users, see [Policy.Total].
// No username begins with a space, so there is no conflict.
const TotalUser = " total"

// Total returns the key that counts the client of k over all its users.
func (k Key) Total() Key { return Key{ClientID: k.ClientID, Username: TotalUser} }

// IsTotal reports whether k counts a client over all its users.
func (k Key) IsTotal() bool { return k.Username == TotalUser }

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

// IsSource reports whether k counts a client from one source address.
func (k Key) IsSource() bool { return strings.HasPrefix(k.Username, SourceUser) }

// MaxKeySize bounds the memory of a key. Longer names are replaced by digests.
const MaxKeySize = 255

// Bounded returns the key that k is counted and banned under: k itself, or its digests if the two
// names together are longer than MaxKeySize.
func (k Key) Bounded() Key {
	if len(k.ClientID)+len(k.Username) <= MaxKeySize {
		return k
	}
	return k.digests()
}

func (k Key) digests() Key {
	return Key{ClientID: Shorten(k.ClientID), Username: Shorten(k.Username)}
}

// Shorten returns s, or its SHA-256 in hexadecimal if s is longer than half of MaxKeySize.
func Shorten(s string) string {
	if len(s) <= MaxKeySize/2 {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return "sha256:" + hex.EncodeToString(sum[:])
}
