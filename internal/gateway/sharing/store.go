package sharing

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"oauth-server/internal/gateway/subject"
)

// Key stands for a refresh token of a client.
type Key [16]byte

// KeyOf returns the key of a refresh token of a client: the first half of the SHA-256 of the token's digest and the
// client_id. So the key of another client is another one, and entries of different clients never meet.
func KeyOf(token subject.Digest, clientID string) Key {
	sum := sha256.Sum256(append(token[:], clientID...))
	return Key(sum[:len(Key{})])
}

// Entry is whose a refresh token is.
type Entry struct {
	Key     Key
	Subject string // the user; 1 to 255 bytes of UTF-8, as of [subject.Reader.Read]
	Expires time.Time
}

// ErrNotFound is returned for a key without an entry.
var ErrNotFound = errors.New("sharing: no such entry")

// MaxBatch is how many entries are stored at once, at most.
const MaxBatch = 1000

// Store keeps entries for all instances. It is safe for concurrent use, and keeps times to the millisecond.
type Store interface {
	// Subject returns the entry of a key. It may have expired: the caller has the clock. The error is [ErrNotFound] if
	// there is none.
	Subject(ctx context.Context, k Key) (Entry, error)
	// PutSubjects stores up to [MaxBatch] entries, each with another key, in the place of those with the same keys.
	// After an error some of them may be stored. Where several calls store a key at the same time, the entry of one of
	// them is stored. The store removes an entry some time after it has expired.
	PutSubjects(ctx context.Context, entries []Entry) error
}
