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

// reports are kept in memory: the file has one process at a time, and what
// that one tells of itself is worth nothing once it is gone.
type reports struct {
	mu         sync.Mutex
	byInstance map[string]clientcfg.Report
}

// PutReport implements [clientcfg.Reports].
func (s *Store) PutReport(ctx context.Context, r clientcfg.Report) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.reports.mu.Lock()
	defer s.reports.mu.Unlock()
	if s.reports.byInstance == nil {
		s.reports.byInstance = map[string]clientcfg.Report{}
	}
	s.reports.byInstance[r.Instance] = r
	return nil
}

// Reports implements [clientcfg.Reports].
func (s *Store) Reports(ctx context.Context, now time.Time) ([]clientcfg.Report, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.reports.mu.Lock()
	defer s.reports.mu.Unlock()
	maps.DeleteFunc(s.reports.byInstance, func(_ string, r clientcfg.Report) bool { return r.Expires.Before(now) })
	return slices.SortedFunc(maps.Values(s.reports.byInstance), func(a, b clientcfg.Report) int {
		return cmp.Compare(a.Instance, b.Instance)
	}), nil
}

// DeleteReport implements [clientcfg.Reports].
func (s *Store) DeleteReport(ctx context.Context, instance string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.reports.mu.Lock()
	defer s.reports.mu.Unlock()
	delete(s.reports.byInstance, instance)
	return nil
}
