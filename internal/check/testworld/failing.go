package testworld

import (
	"context"
	"sync"
	"time"

	"oauth-server/internal/overload"
	"oauth-server/internal/store"
)

// Failing is a store with one operation that fails, such as "Get users".
type Failing struct {
	store.Backend
	mu        sync.Mutex // of Rank
	Operation string
	Err       error
	Hits      int // how often it was called

	Begun, Done  func(operation string) // called with each operation, if not nil
	Rank         overload.Rank          // of the last operation
	RevokedUntil time.Time              // expiry of the last record of PutAll
}

// try calls do unless the operation fails.
func (f *Failing) try(ctx context.Context, operation string, do func() error) error {
	f.mu.Lock()
	f.Rank = overload.RankFrom(ctx)
	f.mu.Unlock()
	if f.Begun != nil {
		f.Begun(operation)
	}
	if f.Done != nil {
		defer f.Done(operation)
	}
	if f.Operation == operation {
		f.Hits++
		if f.Err != nil {
			return f.Err
		}
	}
	return do()
}

// Meanwhile calls change once, after the next such operation.
func (f *Failing) Meanwhile(operation string, change func()) {
	f.Done = func(done string) {
		if done == operation {
			f.Done = nil
			change()
		}
	}
}

// Count counts the operations of the store.
func (f *Failing) Count() map[string]int {
	n := map[string]int{}
	f.Begun = func(operation string) { n[operation]++ }
	return n
}

// Get implements [store.Backend].
func (f *Failing) Get(ctx context.Context, t store.Table, each func(store.Record) error, keys ...string) error {
	return f.try(ctx, "Get "+t.Name, func() error { return f.Backend.Get(ctx, t, each, keys...) })
}

// Put implements [store.Backend].
func (f *Failing) Put(ctx context.Context, t store.Table, r store.Record, seen store.Seen) (after store.Seen, err error) {
	failed := f.try(ctx, "Put "+t.Name, func() error { after, err = f.Backend.Put(ctx, t, r, seen); return err })
	return after, failed
}

// PutAll implements [store.Backend].
func (f *Failing) PutAll(ctx context.Context, t store.Table, records []store.Record) error {
	return f.try(ctx, "PutAll "+t.Name, func() error {
		f.RevokedUntil = records[0].Expires
		return f.Backend.PutAll(ctx, t, records)
	})
}

// Delete implements [store.Backend].
func (f *Failing) Delete(ctx context.Context, t store.Table, seen *store.Seen, key string) error {
	return f.try(ctx, "Delete "+t.Name, func() error { return f.Backend.Delete(ctx, t, seen, key) })
}
