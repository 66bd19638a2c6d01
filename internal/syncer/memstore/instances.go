package memstore

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"time"

	"oauth-server/internal/syncer"
)

// heartbeats calls do with the heartbeats, unless ctx has ended. It returns all of them afterwards,
// ordered by ID and without reports.
func (s *Store) heartbeats(ctx context.Context, do func(all map[string]syncer.Instance)) (list []syncer.Instance, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.instances == nil {
		s.instances = map[string]syncer.Instance{}
	}
	do(s.instances)
	for _, id := range slices.Sorted(maps.Keys(s.instances)) {
		i := s.instances[id]
		i.Report = nil
		list = append(list, i)
	}
	return list, nil
}

// Beat implements [syncer.Instances]. Records never expire.
func (s *Store) Beat(ctx context.Context, self syncer.Instance, ttl time.Duration) (alive []syncer.Instance, previous string, err error) {
	now := s.now()
	self.Beaten, self.Report = now, bytes.Clone(self.Report)
	alive, err = s.heartbeats(ctx, func(all map[string]syncer.Instance) { previous, all[self.ID] = all[self.ID].Nonce, self })
	return syncer.Living(alive, now, ttl), previous, err
}

// Alive implements [syncer.Instances].
func (s *Store) Alive(ctx context.Context, ttl time.Duration) ([]syncer.Instance, error) {
	list, err := s.heartbeats(ctx, func(map[string]syncer.Instance) {})
	return syncer.LastLiving(list, s.now(), ttl), err
}

// Leave implements [syncer.Instances].
func (s *Store) Leave(ctx context.Context, id string) error {
	_, err := s.heartbeats(ctx, func(all map[string]syncer.Instance) { delete(all, id) })
	return err
}

// Reports returns the live instances with their reports, for the admin API.
func (s *Store) Reports(ctx context.Context, ttl time.Duration) ([]syncer.Instance, error) {
	reports := map[string][]byte{}
	list, err := s.heartbeats(ctx, func(all map[string]syncer.Instance) {
		for id, i := range all {
			reports[id] = bytes.Clone(i.Report)
		}
	})
	list = syncer.Living(list, s.now(), ttl)
	for i := range list {
		list[i].Report = reports[list[i].ID]
	}
	return list, err
}
