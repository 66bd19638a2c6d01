package syncer

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// calls are the exchanges of a queue that are under way. Each lasts from before it takes counts until
// it has their outcome.
type calls struct {
	mu  sync.Mutex
	all map[chan struct{}]time.Duration // when each began, since the syncer was made; closed when it ends
}

// delay returns how long to wait before another call may begin; 0 if one may begin now.
func (c *calls) delay(now time.Duration) (wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) == maxCalls {
		return time.Hour // the end of one wakes the loop
	}
	for _, began := range c.all {
		wait = max(wait, began+overlap-now)
	}
	return wait
}

// begin records a call that begins now.
func (c *calls) begin(now time.Duration) (end func()) {
	ended := make(chan struct{})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[chan struct{}]time.Duration{}
	}
	c.all[ended] = now
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.all, ended)
		close(ended)
	}
}

// settle waits until every call that has begun has ended.
func (c *calls) settle(ctx context.Context) error {
	c.mu.Lock()
	begun := make([]chan struct{}, 0, len(c.all))
	for ended := range c.all {
		begun = append(begun, ended)
	}
	c.mu.Unlock()
	for _, ended := range begun {
		select {
		case <-ended:
		case <-ctx.Done():
			return fmt.Errorf("syncer: wait for running exchanges: %w", ctx.Err())
		}
	}
	return nil
}

// Settle waits until every exchange that has begun has ended. No write sent afterwards has counts
// that were dropped from memory before, so the counts can be removed from the store.
func (s *Syncer) Settle(ctx context.Context) error {
	if err := s.queue.calls.settle(ctx); err != nil {
		return err
	}
	return s.leases.calls.settle(ctx)
}
