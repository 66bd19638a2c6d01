package embedded

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"oauth-server/internal/syncer"
)

// instances are those of this process, in memory: no other process can have the
// file open, and a heartbeat is worth nothing once its process is gone.
type instances struct {
	mu      sync.Mutex
	records map[string]syncer.Instance
}

// Beat implements [syncer.Instances]. The clock is that of this machine, read
// so that a change of the wall clock makes no instance older.
func (s *Store) Beat(ctx context.Context, self syncer.Instance, ttl time.Duration) (alive []syncer.Instance, previous string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	s.instances.mu.Lock()
	defer s.instances.mu.Unlock()
	previous = s.instances.records[self.ID].Nonce
	self.Beaten, self.Report = time.Now(), bytes.Clone(self.Report)
	s.instances.records[self.ID] = self
	alive = s.instances.alive(self.Beaten, ttl)
	for i := range alive {
		alive[i].Report = nil
	}
	return alive, previous, nil
}

// alive returns the records of those that have beaten within ttl of now, ordered
// by ID. One that is further ahead is of a clock that was wrong. The lock must be
// held.
func (s *instances) alive(now time.Time, ttl time.Duration) (list []syncer.Instance) {
	for _, id := range slices.Sorted(maps.Keys(s.records)) {
		if i := s.records[id]; now.Sub(i.Beaten).Abs() < ttl {
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
	s.instances.mu.Lock()
	defer s.instances.mu.Unlock()
	var newest time.Time
	now := time.Now()
	for _, i := range s.instances.records {
		if i.Beaten.After(newest) && i.Beaten.Sub(now) < ttl {
			newest = i.Beaten
		}
	}
	list := s.instances.alive(newest, ttl)
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
	s.instances.mu.Lock()
	defer s.instances.mu.Unlock()
	delete(s.instances.records, id)
	return nil
}

// Reports implements [syncer.Reports].
func (s *Store) Reports(ctx context.Context, ttl time.Duration) ([]syncer.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.instances.mu.Lock()
	defer s.instances.mu.Unlock()
	list := s.instances.alive(time.Now(), ttl)
	for i := range list {
		list[i].Report = bytes.Clone(list[i].Report)
	}
	return list, nil
}
