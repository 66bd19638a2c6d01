package embedded

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"oauth-server/internal/syncer"
)

// instances are those of this process: nobody else can have the file open, so
// there is nothing to write down.
type instances struct {
	mu    sync.Mutex
	alive map[string]syncer.Instance
}

// Beat implements [syncer.Instances].
func (s *Store) Beat(ctx context.Context, self syncer.Instance, ttl time.Duration) ([]syncer.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.instances.mu.Lock()
	defer s.instances.mu.Unlock()
	self.Beaten = time.Now()
	maps.DeleteFunc(s.instances.alive, func(_ string, i syncer.Instance) bool { return self.Beaten.Sub(i.Beaten) >= ttl })
	s.instances.alive[self.ID] = self
	var list []syncer.Instance
	for _, id := range slices.Sorted(maps.Keys(s.instances.alive)) {
		list = append(list, s.instances.alive[id])
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
	delete(s.instances.alive, id)
	return nil
}
