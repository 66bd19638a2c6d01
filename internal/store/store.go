// Package store is the lowest layer of the data: records in tables, and one numbered trail of the
// changes that operators make. Two backends implement it, internal/store/bolt in a local file and
// internal/store/mongo in MongoDB. The tests of this package run one suite on both.
//
// A domain package declares its tables, and has a repository of a few methods on a [Collection].
// The store does not interpret records, but requires their value to be a JSON object: MongoDB
// stores it as a document that operators can read and query.
//
// Almost every change is one [Backend.Put] with the state that was read:
//
//	family, seen, err := families.Get(ctx, key)
//	family.Generation++
//	_, err = families.Put(ctx, &family, seen) // ErrConflict: another writer was faster
package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
	"unicode/utf8"
)

// Errors of a [Backend] that are results. Any other error is a failure of the store.
var (
	// ErrConflict: the record, or the trail, is not in the state that the write depends on.
	ErrConflict = errors.New("store: changed concurrently")
	// ErrNotFound: the record does not exist.
	ErrNotFound = errors.New("store: not found")
	// ErrUnreadable: the stored record was edited by hand, damaged, or written by a newer version.
	ErrUnreadable = errors.New("store: unreadable record")
	// ErrMarkLost: the trail does not lead from the mark to now, because it was trimmed or replaced.
	ErrMarkLost = errors.New("store: the trail does not continue the mark")
)

// Table is a set of records with unique keys. A domain package declares it once, as a variable.
type Table struct {
	Name string // a-z, 0-9 and _; the name of the MongoDB collection and of the bolt bucket
	// ByOwner: List finds the records of an owner without reading the others. A bolt file then has
	// an index, which makes writes more expensive. Without it, a bolt file reads the whole table.
	ByOwner bool
}

// Record is one row of a table.
type Record struct {
	Key string // not empty; at most MaxKey bytes of UTF-8
	// Value is a JSON object of at most MaxValue bytes. The order of its members is kept. Whole
	// numbers must fit an int64; others are stored as float64. The name of a member must not
	// contain a zero byte.
	Value []byte
	Owner string // a username, for instance; may be empty; at most MaxKey bytes of UTF-8
	// Expires is when the record becomes useless, to the millisecond; zero: never. The backend
	// removes the record some time later and never hides it before. The caller compares Expires
	// with its own clock.
	Expires time.Time
	// Version counts the writes of the record from 1. In a table written by Append it is the number
	// of the entry that wrote the record. PutAll stores the given version.
	Version int64
	// Nonce is random for every write. It distinguishes a record from a later one with the same
	// version, after a deletion or a restored backup.
	Nonce int64
	// Changed is when the record was written, by the clock of the store, to the millisecond.
	Changed time.Time
	// Err is why the stored record cannot be read, an ErrUnreadable; nil if it can. With Err set,
	// only Key is reliable.
	Err error
}

// Bounds of a record. A write that exceeds them fails.
const (
	MaxKey   = 1024
	MaxValue = 8 << 20 // also of an entry together with its writes
)

// Check returns an error if a record exceeds the bounds. The caller checks that the value is JSON.
func (r *Record) Check() error {
	switch {
	case r.Key == "" || len(r.Key) > MaxKey || !utf8.ValidString(r.Key):
		return fmt.Errorf("store: key of %d bytes must be text of 1 to %d bytes", len(r.Key), MaxKey)
	case len(r.Owner) > MaxKey || !utf8.ValidString(r.Owner):
		return fmt.Errorf("store: owner of %d bytes must be text of at most %d bytes", len(r.Owner), MaxKey)
	case len(r.Value) > MaxValue:
		return fmt.Errorf("store: value of %d bytes exceeds the maximum of %d", len(r.Value), MaxValue)
	}
	return nil
}

// Seen is the state of a record that a write depends on. The zero value means that the record does
// not exist.
type Seen struct{ Version, Nonce int64 }

// Seen returns the state of a record that was read.
func (r *Record) Seen() Seen { return Seen{r.Version, r.Nonce} }

// Query selects the records of a table, ordered by key. Zero fields select everything. At most one of
// Prefix, Owner and ChangedSince is set.
type Query struct {
	Prefix string // of the key
	Owner  string
	After  string // only greater keys
	Limit  int    // at most that many; 0: all
	// ChangedSince selects records written at that time or later, by the clock of the store. The
	// backend adds an overlap for writes that become visible out of order, so a query may return
	// records again.
	ChangedSince time.Time
	// Omit is a member of Value that the caller does not need. The backend may leave it out.
	Omit string
}

// ChangedOverlap is how far before [Query.ChangedSince] a backend starts. It is longer than a write
// takes to become visible, and longer than usual steps back of clocks.
const ChangedOverlap = 10 * time.Second

// NewNonce returns the nonce of a write: a random number that is not 0.
func NewNonce() int64 { return 1 + rand.Int64N(math.MaxInt64) } //nolint:gosec // tells writes apart; no secret

// Write is one record that an entry of the trail changes.
type Write struct {
	Table  Table
	Record Record // Version, Nonce and Changed are set by the store
	Delete bool   // removes the record of that key; only Key is used
}

// Ref names a record changed by an entry of the trail.
type Ref struct{ Table, Key string }

// Entry is one change in the trail. It stays unchanged when its records change again.
type Entry struct {
	Number int64     // counts from 1 without gaps
	Nonce  int64     // random, set by Append; identifies the entry
	At     time.Time // when the caller made it, to the millisecond
	Value  []byte    // a JSON object for readers of the trail; MUST NOT hold secrets
	Refs   []Ref     // the changed records, set by Append
	Err    error     // why the stored entry cannot be read, an ErrUnreadable; nil if it can
}

// Check returns an error if an entry and its writes exceed the bounds.
func (e *Entry) Check(writes []Write) error {
	size := len(e.Value)
	for i := range writes {
		if err := writes[i].Record.Check(); err != nil {
			return err
		}
		size += len(writes[i].Record.Value)
	}
	if size > MaxValue {
		return fmt.Errorf("store: entry of %d bytes with its writes exceeds the maximum of %d", size, MaxValue)
	}
	return nil
}

// Mark is a position in the trail: the last entry that was read. The zero value is before the very
// first entry. A mark is valid while its entry exists, and the zero mark until the first trim.
type Mark struct{ Number, Nonce int64 }

// Mark returns the position after the entry.
func (e *Entry) Mark() Mark { return Mark{e.Number, e.Nonce} }

// Backend stores tables and the trail. It is safe for concurrent use. A write is durable when it returns
// nil. When a context ends during a write, the write may or may not take place.
//
// A table is written either by Put, PutAll and Delete, or by Append, never by both.
type Backend interface {
	// Get calls each with the existing records of those keys, in any order, until it fails. Get
	// returns the error of each. In Get, List and Delete, a key beyond the bounds does not exist.
	Get(ctx context.Context, t Table, each func(Record) error, keys ...string) error
	// List calls each with the matching records, in the order of their keys, until it fails.
	// Records that change during the call may come in their old or new state. Records that stay are
	// never missing. each may use the store. In List and Get, Value is valid until each returns.
	List(ctx context.Context, t Table, q Query, each func(Record) error) error
	// Put stores a record if its predecessor is in the state seen, and returns the new state. Of
	// any number of concurrent calls with one state, exactly one succeeds. The others get
	// ErrConflict. An unreadable record also counts as existing: delete it first. If the reply of a
	// database is lost, Put uses the nonce to find out whether the write took place. After any
	// other error the write may or may not have taken place.
	Put(ctx context.Context, t Table, r Record, seen Seen) (Seen, error)
	// PutAll stores records in any order. It skips a record if one of that key with the same or a
	// greater Version exists. After an error some may be stored.
	PutAll(ctx context.Context, t Table, records []Record) error
	// Delete removes a record if it is in the state seen, or in any state if seen is nil.
	// ErrConflict: the record is in another state. A missing record is an error only if seen is not
	// nil.
	Delete(ctx context.Context, t Table, seen *Seen, key string) error
	// DeleteAll removes the records of those keys, in one commit if the backend has commits.
	DeleteAll(ctx context.Context, t Table, keys ...string) error

	// Append adds an entry with its writes, which take effect together, and returns its mark.
	// e.Number MUST be one more than the number of the newest entry, and the caller must have read
	// the records of that entry. Otherwise Append returns ErrConflict and changes nothing. Each
	// record is written at most once, even if the stored one is unreadable. Lost replies are
	// handled as in Put.
	Append(ctx context.Context, e Entry, writes ...Write) (Mark, error)
	// Trail returns at most limit entries after a mark, the oldest first, and the newest mark. The
	// mark of an unreadable entry is valid too. When Trail returns, every entry up to the newest
	// has taken effect in the tables. ErrMarkLost: read the tables again, and continue from the
	// newest mark, which is valid with this error too.
	Trail(ctx context.Context, after Mark, limit int) ([]Entry, Mark, error)
	// History calls each with the entries before a number, the newest first, until it fails; 0
	// means all entries.
	History(ctx context.Context, before int64, each func(Entry) error) error
	// Trim removes the entries up to a number, but never the newest. Their changes stay. The
	// entries MUST be older than any Append under way.
	Trim(ctx context.Context, through int64) error

	// Now returns the time by the clock of the store: the database server's or this machine's.
	Now(ctx context.Context) (time.Time, error)
	// Close completes operations under way, then releases the data.
	Close() error
}
