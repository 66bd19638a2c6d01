package clientcfg

import (
	"context"
	"errors"
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
	// whenever what Clients returns does.
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

// Revision names one state of the registrations. Only equality has a meaning.
type Revision int64
