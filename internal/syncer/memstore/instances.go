package memstore

import (
	"context"
	"time"

	"oauth-server/internal/syncer"
)

// Beat implements [syncer.Instances]. Records never expire.
func (s *Store) Beat(ctx context.Context, self syncer.Instance, ttl time.Duration) (alive []syncer.Instance, previous string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	alive, previous = s.instances.Beat(s.now(), self, ttl)
	return alive, previous, nil
}

// PutInstance stores a heartbeat as it is, Beaten included.
func (s *Store) PutInstance(i syncer.Instance) { s.instances.Put(i) }

// Alive implements [syncer.Instances].
func (s *Store) Alive(ctx context.Context, ttl time.Duration) ([]syncer.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.instances.Alive(s.now(), ttl), nil
}

// Leave implements [syncer.Instances].
func (s *Store) Leave(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.instances.Leave(id)
	return nil
}

// Reports returns the live instances with their reports, for the admin API.
func (s *Store) Reports(ctx context.Context, ttl time.Duration) ([]syncer.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.instances.Reports(s.now(), ttl), nil
}
