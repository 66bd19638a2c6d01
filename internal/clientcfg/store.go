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
)

// Store reads the registrations. [Registrations] is one.
type Store interface {
	// Clients calls each with every client, in any order. After an error, it may have been called with some.
	Clients(ctx context.Context, each func(Record)) error
	ClientReader
}

// ClientReader reads single registrations.
type ClientReader interface {
	// Client returns the client of that ID. ErrNotFound; ErrUnreadableClient, also if the registration is
	// not valid.
	Client(ctx context.Context, id string) (Client, error)
}

// Record is what is stored under the ID of a client.
type Record struct {
	ID     string
	Client Client // if Err is nil
	Err    error  // wraps ErrUnreadableClient
}

// Registry changes the registrations, each change together with its event: it is made if and only if the event
// is in the audit trail. A client that cannot be read exists: its ID is taken, and it can be deleted.
// [Registrations] is one.
type Registry interface {
	// CreateClient adds c with Version 1. ErrExists if the ID is taken.
	CreateClient(ctx context.Context, c Client, e Event) error
	// UpdateClient replaces the client of that ID if its stored Version is
	// still c.Version, and stores Version+1. If the ID of its stored stamp is
	// not that of c, it is another client of that name: ErrConflict. ErrNotFound.
	UpdateClient(ctx context.Context, c Client, e Event) error
	// DeleteClient removes the client, whatever it is. ErrNotFound.
	DeleteClient(ctx context.Context, id string, e Event) error
	// DeleteUnchanged removes the client of that ID on the conditions of UpdateClient. ErrNotFound,
	// ErrConflict.
	DeleteUnchanged(ctx context.Context, c Client, e Event) error
}

// SecretUses records when secrets were used.
type SecretUses interface {
	// RecordUses records for each use the later of its time and that which is stored. It changes no client.
	RecordUses(ctx context.Context, uses []SecretUse) error
}

// SecretUse is a use of a client's secret.
type SecretUse struct {
	ClientID string
	Digest   secret.Digest
	At       time.Time
}
