package sharing

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"

	"oauth-server/internal/gateway/subject"
	"oauth-server/internal/store"
)

// KeyOf returns the key of a refresh token of a client: the base64url of the first 18 bytes of the SHA-256 of
// the token's digest and the client_id. So the key of another client is another one, and entries of different
// clients never meet.
func KeyOf(token subject.Digest, clientID string) string {
	sum := sha256.Sum256(append(token[:], clientID...))
	return base64.RawURLEncoding.EncodeToString(sum[:18])
}

// Entry is whose a refresh token is.
type Entry struct {
	Key     string // of [KeyOf]
	Subject string // the user; 1 to 255 bytes of UTF-8, as of [subject.Reader.Read]
	Expires time.Time
}

// ErrNotFound is returned for a key without an entry.
var ErrNotFound = errors.New("sharing: no such entry")

// MaxBatch is how many entries are stored at once, at most.
const MaxBatch = 1000

// Store keeps entries for all instances: a [Repository].
type Store interface {
	// Subject returns the entry of a key. It may have expired: the caller has the clock. The error is [ErrNotFound] if
	// there is none.
	Subject(ctx context.Context, k string) (Entry, error)
	// PutSubjects stores up to [MaxBatch] entries, each with another key. Of several with the same key, the one that
	// lasts longest is kept. After an error some of them may be stored.
	PutSubjects(ctx context.Context, entries []Entry) error
}

// Table has the users of refresh tokens by [KeyOf]. There may be millions, so a record is small.
var Table = store.Table{Name: "subjects"}

// CheckRecord returns why a record of [Table] cannot be read; nil if it can.
var CheckRecord = store.Readable(decode)

// Repository keeps entries in a table. It implements [Store].
type Repository struct{ entries store.Collection[Entry] }

// NewRepository returns the entries of a store.
func NewRepository(b store.Backend) *Repository {
	return &Repository{store.Collection[Entry]{Backend: b, Table: Table, Encode: encode, Decode: decode}}
}

// record is the value of an entry.
type record struct {
	User string `json:"user"`
}

func encode(e *Entry) (store.Record, error) {
	value, err := json.Marshal(record{e.Subject})
	return store.Record{Key: e.Key, Value: value, Expires: e.Expires, Version: max(e.Expires.Unix(), 1)}, err
}

func decode(r *store.Record) (Entry, error) {
	var v record
	err := store.Unmarshal(r, &v)
	return Entry{Key: r.Key, Subject: v.User, Expires: r.Expires}, err
}

// Subject implements [Store].
func (r *Repository) Subject(ctx context.Context, k string) (Entry, error) {
	e, _, err := r.entries.Get(ctx, k)
	if errors.Is(err, store.ErrNotFound) {
		err = ErrNotFound
	}
	return e, err
}

// PutSubjects implements [Store].
func (r *Repository) PutSubjects(ctx context.Context, entries []Entry) error {
	return r.entries.PutAll(ctx, entries)
}
