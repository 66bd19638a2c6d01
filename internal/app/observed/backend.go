package observed

import (
	"context"
	"time"

	"oauth-server/internal/store"
	"oauth-server/internal/store/exchange"
)

// Get implements [store.Backend].
func (b *Backend) Get(ctx context.Context, t store.Table, each func(store.Record) error, keys ...string) error {
	return visit(ctx, b, "get_"+t.Name, each, func(ctx context.Context, each func(store.Record) error) error {
		return b.backend.Get(ctx, t, each, keys...)
	})
}

// List implements [store.Backend].
func (b *Backend) List(ctx context.Context, t store.Table, q store.Query, each func(store.Record) error) error {
	return visit(ctx, b, "list_"+t.Name, each, func(ctx context.Context, each func(store.Record) error) error {
		return b.backend.List(ctx, t, q, each)
	})
}

// Put implements [store.Backend].
func (b *Backend) Put(ctx context.Context, t store.Table, r store.Record, seen store.Seen) (now store.Seen, err error) {
	err = b.do(ctx, "put_"+t.Name, func(ctx context.Context) (err error) {
		now, err = b.backend.Put(ctx, t, r, seen)
		return err
	})
	return now, err
}

// PutAll implements [store.Backend].
func (b *Backend) PutAll(ctx context.Context, t store.Table, records []store.Record) error {
	return b.do(ctx, "put_all_"+t.Name, func(ctx context.Context) error { return b.backend.PutAll(ctx, t, records) })
}

// Delete implements [store.Backend].
func (b *Backend) Delete(ctx context.Context, t store.Table, seen *store.Seen, key string) error {
	return b.do(ctx, "delete_"+t.Name, func(ctx context.Context) error { return b.backend.Delete(ctx, t, seen, key) })
}

// DeleteAll implements [store.Backend].
func (b *Backend) DeleteAll(ctx context.Context, t store.Table, keys ...string) error {
	return b.do(ctx, "delete_all_"+t.Name, func(ctx context.Context) error { return b.backend.DeleteAll(ctx, t, keys...) })
}

// Append implements [store.Backend].
func (b *Backend) Append(ctx context.Context, e store.Entry, writes ...store.Write) (m store.Mark, err error) {
	err = b.do(ctx, "append_trail", func(ctx context.Context) (err error) {
		m, err = b.backend.Append(ctx, e, writes...)
		return err
	})
	return m, err
}

// Trail implements [store.Backend].
func (b *Backend) Trail(ctx context.Context, after store.Mark, limit int) (entries []store.Entry, newest store.Mark, err error) {
	err = b.do(ctx, "get_trail", func(ctx context.Context) (err error) {
		entries, newest, err = b.backend.Trail(ctx, after, limit)
		return err
	})
	return entries, newest, err
}

// History implements [store.Backend].
func (b *Backend) History(ctx context.Context, before int64, each func(store.Entry) error) error {
	return visit(ctx, b, "list_trail", each, func(ctx context.Context, each func(store.Entry) error) error {
		return b.backend.History(ctx, before, each)
	})
}

// Trim implements [store.Backend].
func (b *Backend) Trim(ctx context.Context, through int64) error {
	return b.do(ctx, "trim_trail", func(ctx context.Context) error { return b.backend.Trim(ctx, through) })
}

// Now implements [store.Backend].
func (b *Backend) Now(ctx context.Context) (now time.Time, err error) {
	err = b.do(ctx, "get_clock", func(ctx context.Context) (err error) {
		now, err = b.backend.Now(ctx)
		return err
	})
	return now, err
}

// Unreadable implements [store.Reporter].
func (b *Backend) Unreadable(table, key string, err error) { b.o.Observer.Unreadable(table, key, err) }

// Close implements [store.Backend].
func (b *Backend) Close() error { return b.backend.Close() }

// Counters is an [exchange.Store]. Its operations are observed and never wait.
type Counters struct {
	backend  exchange.Store
	observer Observer
}

// NewCounters returns the counters of a backend, observed.
func NewCounters(b exchange.Store, o Observer) *Counters { return &Counters{b, o} }

// Exchange implements [exchange.Store].
func (c *Counters) Exchange(ctx context.Context, items []exchange.Item) (_ []exchange.Result, err error) {
	ctx, end := c.observer.Begin(ctx, "exchange_counters")
	defer func() { end(failed(err)) }()
	return c.backend.Exchange(ctx, items)
}

// Now implements [exchange.Store].
func (c *Counters) Now(ctx context.Context) (_ time.Time, err error) {
	ctx, end := c.observer.Begin(ctx, "get_clock")
	defer func() { end(failed(err)) }()
	return c.backend.Now(ctx)
}
