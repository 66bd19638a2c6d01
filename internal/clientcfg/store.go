package clientcfg

import (
	"context"
	"errors"
	"time"

	"oauth-server/internal/secret"
)

// Errors that a [Store] returns, possibly wrapped.
var (
	ErrNotFound = errors.New("clientcfg: no such client")
	ErrExists   = errors.New("clientcfg: the client exists already")
	ErrConflict = errors.New("clientcfg: the client was changed meanwhile")
	// ErrUnreadableClient: what is stored under the ID is no client of this release. It was edited by
	// hand, or a newer release wrote it.
	ErrUnreadableClient = errors.New("clientcfg: the stored client cannot be read")
	// ErrMarkLost: the store does not know all changes since a mark.
	ErrMarkLost = errors.New("clientcfg: the changes since the mark are not known")
	// ErrNoSum: no other program changes the clients of the store.
	ErrNoSum = errors.New("clientcfg: the store has one writer")
)

// Store keeps the registrations. Implementations MUST be safe for concurrent
// use, MUST make a change durable before they return nil, and MUST return the
// errors above (wrapped is fine) and no others for the cases they name.
type Store interface {
	// Clients calls each with every client, in any order, and returns the mark
	// from which ClientChanges follows what changes afterwards. A change that is
	// made meanwhile may be missing in what was read, and is after the mark then.
	// After an error, each may have been called with some.
	Clients(ctx context.Context, each func(Record)) (Mark, error)
	// ClientsMark returns such a mark alone.
	ClientsMark(ctx context.Context) (Mark, error)
	// ClientChanges calls each with every client that was changed, added or
	// deleted since the mark, as it is now, and returns the mark to continue
	// from. A client may come several times, in the order in which it was read,
	// and may come again next time. It costs what has changed: next to nothing
	// while nothing does. It MUST NOT miss a change, in whatever order changes
	// are made, also by writers that stop for a while between two steps or end.
	// When secrets were used is no change.
	// ErrMarkLost: it is not known any more what has changed since; read all.
	ClientChanges(ctx context.Context, since Mark, each func(Record)) (Mark, error)
	// ClientsSum returns the number of clients and the sum of the tags of all,
	// for changes by programs that ClientChanges does not show: releases that do
	// not know it. ErrNoSum if there can be none.
	ClientsSum(ctx context.Context) (Sum, error)
	ClientReader
}

// ClientReader reads single registrations.
type ClientReader interface {
	// Client returns the client of that ID. ErrNotFound, ErrUnreadableClient.
	Client(ctx context.Context, id string) (Client, error)
}

// Record is what is stored under the ID of a client.
type Record struct {
	ID     string
	Client Client // if Err is nil and it is not gone
	Err    error  // wraps ErrUnreadableClient
	Gone   bool   // there is no such client any more
	Tag    int64  // changes with every change of the client, see ClientsSum
}

// Mark is a place in the sequence of changes. The zero Mark is before the first.
type Mark struct {
	Number int64
	Nonce  int64 // of the change of that number; 0: not known
}

// Sum is the number of clients and the sum of their tags, which may overflow.
type Sum struct{ Clients, Tags int64 }

// Registry changes the registrations. A client that cannot be read exists:
// its ID is taken, and it can be deleted.
type Registry interface {
	// CreateClient adds c with Version 1. ErrExists if the ID is taken.
	CreateClient(ctx context.Context, c Client) error
	// UpdateClient replaces the client of that ID if its stored Version is
	// still c.Version, and stores Version+1. If the ID of its stored stamp is
	// not that of c, it is another client of that name: ErrConflict, unless
	// there is none, as in a record of an earlier release. ErrNotFound,
	// ErrConflict.
	UpdateClient(ctx context.Context, c Client) error
	// DeleteClient removes the client, whatever it is. ErrNotFound.
	DeleteClient(ctx context.Context, id string) error
	// DeleteUnchanged removes the client of that ID on the conditions of UpdateClient. ErrNotFound,
	// ErrConflict.
	DeleteUnchanged(ctx context.Context, c Client) error
}

// SecretUses records when secrets were used.
type SecretUses interface {
	// RecordUses records for each use the later of its time and that which is
	// stored, with the secret of that digest, the current or the former one.
	// A client or a secret that is not there any more is no error. It changes
	// neither a client's Version nor its tag, and is no change that ClientChanges
	// shows. A use that is recorded during an UpdateClient may be lost.
	RecordUses(ctx context.Context, uses []SecretUse) error
}

// SecretUse is a use of a client's secret.
type SecretUse struct {
	ClientID string
	Digest   secret.Digest
	At       time.Time
}
