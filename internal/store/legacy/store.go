// Package legacy lists the interfaces that move to repositories on [store.Backend] one by one, each
// declared beside the code that calls it. The backends, what wraps them and the suite that checks them
// are in the folders below.
package legacy

import (
	"context"

	"oauth-server/internal/store"
	"oauth-server/internal/syncer"
)

// Store is a backend. The embedded file and MongoDB implement it, and internal/store/storetest checks
// all of it.
type Store interface {
	store.Backend
	syncer.Store

	// The consumer of the next two is internal/admin, which no store may import.

	// CountersOf returns at most limit counters of a client, in any order: all of them, or those of one
	// username if it is not nil.
	CountersOf(ctx context.Context, clientID string, username *string, limit int) ([]syncer.Record, error)
	// EraseCounters removes the counters of a client: all of them, or those of one username if it is
	// not nil.
	EraseCounters(ctx context.Context, clientID string, username *string) error
}
