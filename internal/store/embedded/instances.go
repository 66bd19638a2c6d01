package embedded

import (
	"context"
	"time"

	"oauth-server/internal/syncer"
)

// Heartbeats are kept in memory: no other process can have the file open, and a heartbeat means nothing
// once its process has ended. The clock is the monotonic one of this machine, so a change of the wall
// clock makes no instance older.

// Beat implements [syncer.Instances].
func (s *Store) Beat(ctx context.Context, self syncer.Instance, ttl time.Duration) (alive []syncer.Instance, previous string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	alive, previous = s.instances.Beat(time.Now(), self, ttl)
	return alive, previous, nil
}

// Alive implements [syncer.Instances].
func (s *Store) Alive(ctx context.Context, ttl time.Duration) ([]syncer.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.instances.Alive(time.Now(), ttl), nil
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
	return s.instances.Reports(time.Now(), ttl), nil
}
