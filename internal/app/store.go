package app

import (
	"context"
	"errors"
	"fmt"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
	"oauth-server/internal/grants"
	"oauth-server/internal/keys"
	"oauth-server/internal/store/embedded"
)

// Store is everything that the parts of the server ask of a backend, together.
type Store interface {
	clientcfg.Store
	clientcfg.Registry
	keys.Store
	grants.Store
	grants.UserRegistry
	// Close answers what is under way, then lets go of the data.
	Close() error
}

// ErrUnsupported is returned for a backend that this build does not have.
var ErrUnsupported = errors.New("this store is not supported")

// OpenStore opens the configured backend. A file that another process holds
// is an error at once, not a wait; it says what to do.
func OpenStore(_ context.Context, cfg config.Store) (Store, error) {
	switch {
	case cfg.Embedded != nil:
		return embedded.Open(cfg.Embedded.Path, embedded.Options{})
	default:
		return nil, fmt.Errorf("open store: %w", ErrUnsupported)
	}
}
