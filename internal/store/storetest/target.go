package storetest

import (
	"context"
	"testing"
	"time"

	"oauth-server/internal/store"
	"oauth-server/internal/syncer"
)

// Backend is a store that lets the suite remove expired records. If a server removes them by
// itself, the test of the backend adds Sweep.
type Backend interface {
	store.Backend
	store.Sweeper
	syncer.Store
	CountersOf(ctx context.Context, clientID string, username *string, limit int) ([]syncer.Record, error)
	EraseCounters(ctx context.Context, clientID string, username *string) error
}

// Target is a backend under test.
type Target struct {
	// Location creates an empty place for data and returns the string that Open needs to find it,
	// even in another process. The place is removed when the test ends.
	Location func(t *testing.T) string
	// Open opens the data at a location. Once a backend is closed, or its process has ended, the same
	// location can be opened again.
	Open func(ctx context.Context, location string) (Backend, error)
	// Put is [SyncTarget].Put for a backend that Open returned.
	Put func(t *testing.T, b SyncBackend, r syncer.Record, expire time.Time)
}

// Run runs the whole suite.
func Run(t *testing.T, target Target) {
	t.Helper()
	t.Run("Contexts", func(t *testing.T) { testContexts(t, target) })
	RunSync(t, SyncTarget{
		Fresh: func(t *testing.T) SyncBackend { t.Helper(); return target.fresh(t) },
		Put:   target.Put,
	})
}

// fresh opens an empty backend that is closed when the test ends.
func (target Target) fresh(t *testing.T) Backend {
	t.Helper()
	return target.open(t, target.Location(t))
}

func (target Target) open(t *testing.T, location string) Backend {
	t.Helper()
	b, err := target.Open(t.Context(), location)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return b
}
