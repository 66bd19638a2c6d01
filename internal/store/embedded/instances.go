package embedded

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"oauth-server/internal/clientcfg"
)

// instances are kept in memory: the file has one process at a time, and what
// that one tells of itself is worth nothing once it is gone.
type instances struct {
	mu   sync.Mutex
	byID map[string]clientcfg.InstanceState
}

// PutInstance implements [clientcfg.Instances].
func (s *Store) PutInstance(ctx context.Context, state clientcfg.InstanceState) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.instances.mu.Lock()
	defer s.instances.mu.Unlock()
	if s.instances.byID == nil {
		s.instances.byID = map[string]clientcfg.InstanceState{}
	}
	s.instances.byID[state.ID] = state
	return nil
}

// Instances implements [clientcfg.Instances].
func (s *Store) Instances(ctx context.Context, now time.Time) ([]clientcfg.InstanceState, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.instances.mu.Lock()
	defer s.instances.mu.Unlock()
	maps.DeleteFunc(s.instances.byID, func(_ string, st clientcfg.InstanceState) bool { return st.Expires.Before(now) })
	return slices.SortedFunc(maps.Values(s.instances.byID), func(a, b clientcfg.InstanceState) int {
		return cmp.Compare(a.ID, b.ID)
	}), nil
}

// DeleteInstance implements [clientcfg.Instances].
func (s *Store) DeleteInstance(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.instances.mu.Lock()
	defer s.instances.mu.Unlock()
	delete(s.instances.byID, id)
	return nil
}
