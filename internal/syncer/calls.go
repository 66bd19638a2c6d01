package syncer

import (
	"slices"
	"sync"
	"time"
)

// calls are the exchanges under way.
type calls struct {
	mu      sync.Mutex
	began   []time.Duration // of each, since the syncer was made
	running sync.WaitGroup
}

// delay returns how long to wait before another call may begin; 0 if one may begin now.
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

// begin adds a call; the function that it returns removes it.
func (c *calls) begin(now time.Duration) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.began = append(c.began, now)
	c.running.Add(1)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		i := slices.Index(c.began, now)
		c.began = slices.Delete(c.began, i, i+1)
		c.running.Done()
	}
}

// wait returns when no call is under way.
func (c *calls) wait() { c.running.Wait() }
