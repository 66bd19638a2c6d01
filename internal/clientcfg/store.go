package clientcfg

import (
	"context"
	"errors"
	"time"

	"oauth-server/internal/secret"
)

// Errors that a [Store] returns, possibly wrapped.
var (
	ErrNotFound = errors.New("clientcfg: client not found")
	ErrExists   = errors.New("clientcfg: client already exists")
	ErrConflict = errors.New("clientcfg: client changed concurrently")
	// ErrUnreadableClient means that the record under this ID is not a client of this release. It
	// was edited by hand, or a newer release wrote it.
	ErrUnreadableClient = errors.New("clientcfg: stored client is unreadable")
)

// Store reads the registrations. [Registrations] implements it.
type Store interface {
	// Clients calls each with every client, in any order. If it returns an error, it may already
	// have called each with some clients.
	Clients(ctx context.Context, each func(Record)) error
	ClientReader
}

// ClientReader reads single registrations.
type ClientReader interface {
	// Client returns the client with that ID. Errors: ErrNotFound; ErrUnreadableClient, also for an
	// invalid registration.
	Client(ctx context.Context, id string) (Client, error)
}

// Record is the stored record of a client, readable or not.
type Record struct {
	ID     string
	Client Client // if Err is nil
	Err    error  // wraps ErrUnreadableClient
}

// RegistrationStore changes the registrations. Each change is made if and only if its event is in the audit
// trail. An unreadable client exists: its ID is taken, and it can be deleted. [Registrations]
// implements it.
type RegistrationStore interface {
	// CreateClient adds c with Version 1. It returns ErrExists if the ID is taken.
	CreateClient(ctx context.Context, c Client, e Event) error
	// UpdateClient replaces the client with that ID if its stored Version is still c.Version, and
	// stores Version+1. If the stored stamp has another ID than c's, the client is a different one
	// with the same ID. Errors: ErrConflict, ErrNotFound.
	UpdateClient(ctx context.Context, c Client, e Event) error
	// DeleteClient removes the client, readable or not. Errors: ErrNotFound.
	DeleteClient(ctx context.Context, id string, e Event) error
	// DeleteUnchanged removes the client under the conditions of UpdateClient. Errors: ErrNotFound,
	// ErrConflict.
	DeleteUnchanged(ctx context.Context, c Client, e Event) error
}

// SecretUses records when secrets were used.
type SecretUses interface {
	// RecordUses records each use, unless a later time is already stored. It changes no client.
	RecordUses(ctx context.Context, uses []SecretUse) error
}

// SecretUse is a use of a client's secret.
type SecretUse struct {
	ClientID string
	Digest   secret.Digest
	At       time.Time
}
