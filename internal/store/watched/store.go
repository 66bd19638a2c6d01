package watched

import (
	"context"
	"errors"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
)

// Observer measures operations. It must be safe for concurrent use.
type Observer interface {
	// Begin is called before the operation, which gets the context that it returns; end is called
	// after it, with whether the store failed.
	Begin(ctx context.Context, operation string) (_ context.Context, end func(failed bool))
}

// Store is a watched [grants.Users].
type Store struct {
	backend  grants.Users
	observer Observer
}

// New returns the backend, watched.
func New(b grants.Users, o Observer) *Store { return &Store{backend: b, observer: o} }

// answers are errors that are results: the store has not failed.
var answers = []error{
	grants.ErrNotFound, grants.ErrExists, grants.ErrClaimed,
	clientcfg.ErrNotFound, clientcfg.ErrExists, clientcfg.ErrConflict, clientcfg.ErrUnreadableClient,
	context.Canceled, // the caller cancelled
}

// Failed reports whether an error of a store is a failure of it, and not an answer or a caller that has gone.
func Failed(err error) bool {
	if err == nil {
		return false
	}
	for _, answer := range answers {
		if errors.Is(err, answer) {
			return false
		}
	}
	return true
}
