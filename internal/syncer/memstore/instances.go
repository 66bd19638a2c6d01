package memstore

import (
	"context"
	"maps"
	"slices"
	"time"

	"oauth-server/internal/syncer"
)

// Beat implements [syncer.Instances]. Heartbeats never expire, and their reports are not kept.
func (s *Store) Beat(ctx context.Context, self syncer.Instance, ttl time.Duration) (alive []syncer.Instance, previous string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.instances == nil {
		s.instances = map[string]syncer.Instance{}
	}
	previous = s.instances[self.ID].Nonce
	self.Beaten, self.Report = s.now(), nil
	s.instances[self.ID] = self
	for _, id := range slices.Sorted(maps.Keys(s.instances)) {
		alive = append(alive, s.instances[id])
	}
	return syncer.Living(alive, self.Beaten, ttl), previous, nil
}

// Leave implements [syncer.Instances].
func (s *Store) Leave(ctx context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.instances, id)
	return ctx.Err()
}
