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

// KeyOf returns the store key of a client's refresh token: the base64url of the first 18 bytes of
// the SHA-256 of the token's digest and the client_id. Entries of different clients therefore have
// different keys.
func KeyOf(token subject.Digest, clientID string) string {
	sum := sha256.Sum256(append(token[:], clientID...))
	return base64.RawURLEncoding.EncodeToString(sum[:18])
}

// Entry maps a refresh token to its user.
type Entry struct {
	Key     string // from [KeyOf]
	Subject string // the user; 1 to 255 bytes of UTF-8, as from [subject.Reader.Read]
	Expires time.Time
}

// ErrNotFound is returned for a key without an entry.
var ErrNotFound = errors.New("sharing: entry not found")

// MaxBatch is the maximum number of entries in one write.
const MaxBatch = 1000

// Store stores entries for all instances. [Repository] implements it.
type Store interface {
	// Subject returns the entry of a key. The entry may have expired, because only the caller has a
	// clock. The error is [ErrNotFound] if there is no entry.
	Subject(ctx context.Context, k string) (Entry, error)
	// PutSubjects stores up to [MaxBatch] entries with distinct keys. If a key already has an
	// entry, the one that expires later stays. After an error, some entries may be stored.
	PutSubjects(ctx context.Context, entries []Entry) error
}

// Table holds the users of refresh tokens by [KeyOf]. It may have millions of records, so a record
// is small.
var Table = store.Table{Name: "subjects"}

// CheckRecord returns the reason why a record of [Table] cannot be read, or nil.
var CheckRecord = store.Readable(decode)

// Repository stores entries in a table. It implements [Store].
type Repository struct{ entries store.Collection[Entry] }

// NewRepository returns a Repository that uses the store b.
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
