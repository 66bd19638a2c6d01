package syncer

import (
	"slices"
	"sync"
	"time"
)

// calls are the exchanges of a queue that are under way.
type calls struct {
	running sync.WaitGroup

	mu    sync.Mutex
	began []time.Duration // of each, since the syncer was made
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

// begin makes a call, which has begun now, in a goroutine, and then calls ended.
func (c *calls) begin(now time.Duration, call, ended func()) {
	c.mu.Lock()
	c.began = append(c.began, now)
	c.mu.Unlock()
	c.running.Go(func() {
		defer ended()
		defer c.end(now)
		call()
	})
}

// end removes a call that began then.
func (c *calls) end(began time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.began, began)
	c.began = slices.Delete(c.began, i, i+1)
}
