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

// Store keeps the registrations. Implementations MUST be safe for concurrent
// use, MUST make a change durable before they return nil, and MUST return the
// errors above (wrapped is fine) and no others for the cases they name.
type Store interface {
	// Clients calls each with every client, in any order, and returns the
	// revision at which they were read. After an error, each may have been
	// called with some.
	Clients(ctx context.Context, each func(Record)) (Revision, error)
	// Client returns the client of that ID. ErrNotFound, ErrUnreadableClient.
	Client(ctx context.Context, id string) (Client, error)
	// Revision returns the current revision, cheaply. It MUST change
	// whenever what Clients returns does, except for when secrets were used.
	Revision(ctx context.Context) (Revision, error)
}

// Record is what is stored under the ID of a client.
type Record struct {
	ID     string
	Client Client // if Err is nil
	Err    error  // wraps ErrUnreadableClient
}

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
	// DeleteClient removes the client. ErrNotFound.
	DeleteClient(ctx context.Context, id string) error
}

// SecretUses records when secrets were used.
type SecretUses interface {
	// RecordUses records for each use the later of its time and that which is
	// stored, with the secret of that digest, the current or the former one.
	// A client or a secret that is not there any more is no error. It changes
	// neither a client's Version nor the revision: no instance has to read its
	// clients again because of it. A use that is recorded during an UpdateClient
	// may be lost.
	RecordUses(ctx context.Context, uses []SecretUse) error
}

// SecretUse is a use of a client's secret.
type SecretUse struct {
	ClientID string
	Digest   secret.Digest
	At       time.Time
}

// Revision names one state of the registrations. Only equality has a meaning.
type Revision int64
