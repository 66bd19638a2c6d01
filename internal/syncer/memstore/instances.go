package memstore

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"time"

	"oauth-server/internal/store"
	"oauth-server/internal/syncer"
)

func (s *Store) heartbeats() *syncer.Heartbeats { return syncer.NewHeartbeats(tables{from: s}) }

// Beat implements [syncer.Instances]. Records never expire.
func (s *Store) Beat(ctx context.Context, self syncer.Instance, ttl time.Duration) (alive []syncer.Instance, previous string, err error) {
	return s.heartbeats().Beat(ctx, self, ttl)
}

// Alive implements [syncer.Instances].
func (s *Store) Alive(ctx context.Context, ttl time.Duration) ([]syncer.Instance, error) {
	return s.heartbeats().Alive(ctx, ttl)
}

// Leave implements [syncer.Instances].
func (s *Store) Leave(ctx context.Context, id string) error { return s.heartbeats().Leave(ctx, id) }

// Reports returns the live instances with their reports, for the admin API.
func (s *Store) Reports(ctx context.Context, ttl time.Duration) ([]syncer.Instance, error) {
	return s.heartbeats().Reports(ctx, ttl)
}

// tables has the methods of [store.Backend] that heartbeats need.
type tables struct {
	store.Backend
	from *Store
}

// in calls do with the records of a table, unless ctx has ended.
func (b tables) in(ctx context.Context, t store.Table, do func(records map[string]store.Record)) error {
	b.from.mu.Lock()
	defer b.from.mu.Unlock()
	if b.from.tables == nil {
		b.from.tables = map[string]map[string]store.Record{}
	}
	if b.from.tables[t.Name] == nil {
		b.from.tables[t.Name] = map[string]store.Record{}
	}
	if ctx.Err() == nil {
		do(b.from.tables[t.Name])
	}
	return ctx.Err()
}

// Get implements [store.Backend].
func (b tables) Get(ctx context.Context, t store.Table, each func(store.Record) error, keys ...string) error {
	var found []store.Record
	err := b.in(ctx, t, func(records map[string]store.Record) {
		for _, key := range keys {
			if r, ok := records[key]; ok {
				found = append(found, r)
			}
		}
	})
	for i := 0; i < len(found) && err == nil; i++ {
		err = each(found[i])
	}
	return err
}

// List implements [store.Backend], without a query.
func (b tables) List(ctx context.Context, t store.Table, _ store.Query, each func(store.Record) error) error {
	var keys []string
	err := b.in(ctx, t, func(records map[string]store.Record) { keys = slices.Sorted(maps.Keys(records)) })
	if err != nil {
		return err
	}
	return b.Get(ctx, t, each, keys...)
}

// Put implements [store.Backend].
func (b tables) Put(ctx context.Context, t store.Table, r store.Record, seen store.Seen) (store.Seen, error) {
	conflict := false
	r.Version, r.Nonce, r.Changed = seen.Version+1, store.NewNonce(), b.from.now()
	err := b.in(ctx, t, func(records map[string]store.Record) {
		was := records[r.Key] // zero if it does not exist
		if conflict = was.Seen() != seen; !conflict {
			records[r.Key] = r
		}
	})
	if conflict {
		return store.Seen{}, store.ErrConflict
	}
	return r.Seen(), err
}

// PutAll implements [store.Backend]. Every record replaces the one before.
func (b tables) PutAll(ctx context.Context, t store.Table, list []store.Record) error {
	return b.in(ctx, t, func(records map[string]store.Record) {
		for _, r := range list {
			r.Value = bytes.Clone(r.Value)
			records[r.Key] = r
		}
	})
}

// Delete implements [store.Backend], in any state.
func (b tables) Delete(ctx context.Context, t store.Table, _ *store.Seen, key string) error {
	return b.in(ctx, t, func(records map[string]store.Record) { delete(records, key) })
}

// Now implements [store.Backend].
func (b tables) Now(ctx context.Context) (time.Time, error) { return b.from.Now(ctx) }
