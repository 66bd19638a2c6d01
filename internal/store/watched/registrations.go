package watched

import (
	"context"

	"oauth-server/internal/keys"
)

// Keys implements keys.Store.
func (s *Store) Keys(ctx context.Context) (_ []keys.Record, err error) {
	ctx, end := s.observer.Begin(ctx, "read_keys")
	defer func() { end(Failed(err)) }()
	return s.backend.Keys(ctx)
}

// AddKey implements keys.Store.
func (s *Store) AddKey(ctx context.Context, k keys.Record) (err error) {
	ctx, end := s.observer.Begin(ctx, "add_key")
	defer func() { end(Failed(err)) }()
	return s.backend.AddKey(ctx, k)
}

// ReplaceKey implements keys.Store.
func (s *Store) ReplaceKey(ctx context.Context, id string, before, after []byte) (err error) {
	ctx, end := s.observer.Begin(ctx, "replace_key")
	defer func() { end(Failed(err)) }()
	return s.backend.ReplaceKey(ctx, id, before, after)
}

// DeleteKey implements keys.Store.
func (s *Store) DeleteKey(ctx context.Context, id string) (err error) {
	ctx, end := s.observer.Begin(ctx, "delete_key")
	defer func() { end(Failed(err)) }()
	return s.backend.DeleteKey(ctx, id)
}

// Shared implements keys.SharedStore.
func (s *Store) Shared(ctx context.Context, name string) (_ []byte, err error) {
	ctx, end := s.observer.Begin(ctx, "read_shared_secret")
	defer func() { end(Failed(err)) }()
	return s.backend.Shared(ctx, name)
}

// PutShared implements keys.SharedStore.
func (s *Store) PutShared(ctx context.Context, name string, before, after []byte) (err error) {
	ctx, end := s.observer.Begin(ctx, "put_shared_secret")
	defer func() { end(Failed(err)) }()
	return s.backend.PutShared(ctx, name, before, after)
}
