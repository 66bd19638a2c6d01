package secret

import (
	"errors"
	"fmt"
)

// Minimum requirements for a secret made elsewhere. `openssl rand -hex 32` gives 64 characters, and
// fewer than ten different ones are practically impossible.
const (
	givenLength    = Bits / 6
	givenDifferent = 10
)

// Given returns the digest of a client secret that was made elsewhere. Such a secret is hashed as
// cheaply as a random one of [Bits] bits, so Given refuses text that is too short or too regular to
// be random. It also refuses characters other than visible ASCII, because not every client can send
// them. It cannot recognize a secret that a person has chosen.
func Given(text string) (Digest, error) {
	if len(text) < givenLength {
		return Digest{}, fmt.Errorf("it has %d characters, must have at least %d random ones: openssl rand -hex 32", len(text), givenLength)
	}
	seen := map[rune]bool{}
	for _, r := range text {
		if r <= ' ' || r > '~' {
			return Digest{}, errors.New("it contains a character that is not visible ASCII, such as a space")
		}
		seen[r] = true
	}
	if len(seen) < givenDifferent {
		return Digest{}, fmt.Errorf("it has only %d different characters and is not random: openssl rand -hex 32", len(seen))
	}
	return DigestOf(text), nil
}
