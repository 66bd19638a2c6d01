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
)

// Store keeps the registrations. Implementations MUST be safe for concurrent
// use, MUST make a change durable before they return nil, and MUST return the
// errors above (wrapped is fine) and no others for the cases they name.
type Store interface {
	// Clients returns every client, ordered by ID, and the revision at which
	// it was read.
	Clients(ctx context.Context) ([]Client, Revision, error)
	// Revision returns the current revision, cheaply. It MUST change
	// whenever what Clients returns does, except for when secrets were used.
	Revision(ctx context.Context) (Revision, error)
}

// Registry changes the registrations.
type Registry interface {
	// CreateClient adds c with Version 1. ErrExists if the ID is taken.
	CreateClient(ctx context.Context, c Client) error
	// UpdateClient replaces the client of that ID if its stored Version is
	// still c.Version, and stores Version+1. ErrNotFound, ErrConflict.
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
