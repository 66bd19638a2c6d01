package watched

import (
	"context"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// Counters is a watched [syncer.Store].
type Counters struct {
	backend  syncer.Store
	observer Observer
}

// NewCounters watches the backend.
func NewCounters(b syncer.Store, o Observer) *Counters {
	return &Counters{backend: b, observer: o}
}

// Apply implements syncer.Store.
func (c *Counters) Apply(ctx context.Context, instance string, writes []syncer.Write) (_ []syncer.Outcome, err error) {
	ctx, end := c.observer.Begin(ctx, "apply_counters")
	defer func() { end(failed(err)) }()
	return c.backend.Apply(ctx, instance, writes)
}

// Load implements syncer.Store.
func (c *Counters) Load(ctx context.Context, ids []ratelimit.CounterID) (_ []syncer.Record, err error) {
	ctx, end := c.observer.Begin(ctx, "load_counters")
	defer func() { end(failed(err)) }()
	return c.backend.Load(ctx, ids)
}

// Now implements syncer.Store.
func (c *Counters) Now(ctx context.Context) (_ time.Time, err error) {
	ctx, end := c.observer.Begin(ctx, "read_clock")
	defer func() { end(failed(err)) }()
	return c.backend.Now(ctx)
}
