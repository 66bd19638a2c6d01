package syncer

import (
	"context"
	"fmt"
	"sync"
)

// trips are the exchanges under way. Each lasts from before it takes counts until it has their
// outcome.
type trips struct {
	mu  sync.Mutex
	all map[chan struct{}]bool // closed when the exchange ends
}

func (t *trips) begin() (end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = map[chan struct{}]bool{}
	}
	ended := make(chan struct{})
	t.all[ended] = true
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.all, ended)
		close(ended)
	}
}

// underWay returns a channel for each exchange under way. It is closed when the exchange ends.
func (t *trips) underWay() (all []<-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for ended := range t.all {
		all = append(all, ended)
	}
	return all
}

// Settle waits until every exchange that has begun has ended. No write sent afterwards has counts
// that were dropped from memory before, so the counts can be removed from the store.
func (s *Syncer) Settle(ctx context.Context) error {
	for _, ended := range s.trips.underWay() {
		select {
		case <-ended:
		case <-ctx.Done():
			return fmt.Errorf("syncer: wait for running exchanges: %w", ctx.Err())
		}
	}
	return nil
}
