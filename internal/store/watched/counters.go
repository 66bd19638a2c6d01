package watched

import (
	"context"
	"time"

	"oauth-server/internal/syncer"
)

// Counters is a watched [syncer.Store].
type Counters struct {
	backend  syncer.Store
	observer Observer
}

// NewCounters returns the backend, watched.
func NewCounters(b syncer.Store, o Observer) *Counters {
	return &Counters{backend: b, observer: o}
}

// Exchange implements syncer.Store.
func (c *Counters) Exchange(ctx context.Context, items []syncer.Item) (_ []syncer.Result, err error) {
	ctx, end := c.observer.Begin(ctx, "exchange_counters")
	defer func() { end(Failed(err)) }()
	return c.backend.Exchange(ctx, items)
}

// Now implements syncer.Store.
func (c *Counters) Now(ctx context.Context) (_ time.Time, err error) {
	ctx, end := c.observer.Begin(ctx, "read_clock")
	defer func() { end(Failed(err)) }()
	return c.backend.Now(ctx)
}
