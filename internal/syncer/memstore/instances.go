package memstore

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"time"

	"oauth-server/internal/syncer"
)

// Beat implements [syncer.Instances]. Records are never forgotten.
func (s *Store) Beat(ctx context.Context, self syncer.Instance, ttl time.Duration) (alive []syncer.Instance, previous string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	previous = s.instances[self.ID].Nonce
	self.Beaten, self.Report = s.now(), bytes.Clone(self.Report)
	if s.instances == nil {
		s.instances = map[string]syncer.Instance{}
	}
	s.instances[self.ID] = self
	alive = s.alive(self.Beaten, ttl)
	for i := range alive {
		alive[i].Report = nil
	}
	return alive, previous, nil
}

// PutInstance stores a record as it is.
func (s *Store) PutInstance(i syncer.Instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.instances == nil {
		s.instances = map[string]syncer.Instance{}
	}
	s.instances[i.ID] = i
}

// alive returns the records of those that have beaten within ttl of now. One that
// is further ahead is of a clock that was wrong.
func (s *Store) alive(now time.Time, ttl time.Duration) (list []syncer.Instance) {
	for _, id := range slices.Sorted(maps.Keys(s.instances)) {
		if i := s.instances[id]; now.Sub(i.Beaten).Abs() < ttl {
			list = append(list, i)
		}
	}
	return list
}

// Alive implements [syncer.Instances].
func (s *Store) Alive(ctx context.Context, ttl time.Duration) ([]syncer.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var newest time.Time
	now := s.now()
	for _, i := range s.instances {
		if i.Beaten.After(newest) && i.Beaten.Sub(now) < ttl {
			newest = i.Beaten
		}
	}
	list := s.alive(newest, ttl)
	for i := range list {
		list[i].Report = nil
	}
	return list, nil
}

// Leave implements [syncer.Instances].
func (s *Store) Leave(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.instances, id)
	return nil
}

// Reports implements [syncer.Reports].
func (s *Store) Reports(ctx context.Context, ttl time.Duration) ([]syncer.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.alive(s.now(), ttl)
	for i := range list {
		list[i].Report = bytes.Clone(list[i].Report)
	}
	return list, nil
}
