package syncer

import (
	"slices"
	"sync"
	"time"
)

// calls are the exchanges under way.
type calls struct {
	mu      sync.Mutex
	began   []time.Duration
	running sync.WaitGroup
}

func newCalls() *calls { return &calls{} }

// full returns how long to wait before another call may begin; 0 if one may now.
func (c *calls) delay(now time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.began); n == maxCalls {
		return time.Hour // the end of one wakes the loop
	} else if n > 0 {
		return max(slices.Max(c.began)+overlap-now, 0)
	}
	return 0
}

// begin notes a call; the function that it returns ends it.
func (c *calls) begin(now time.Duration) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.began = append(c.began, now)
	c.running.Add(1)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.began = slices.Delete(c.began, slices.Index(c.began, now), slices.Index(c.began, now)+1)
		c.running.Done()
	}
}

func (c *calls) wait() { c.running.Wait() }
