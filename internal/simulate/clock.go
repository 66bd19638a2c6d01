package simulate

import (
	"cmp"
	"container/heap"
	"time"

	"oauth-server/internal/turns"
)

// clock is a time that only moves when told to. It calls the timers that become due on the way.
type clock struct {
	now    time.Time
	timers timers
	set    uint64 // timers set so far
	fired  func() // after each call of a timer
}

// Now returns the current time.
func (c *clock) Now() time.Time { return c.now }

// AfterFunc is [time.AfterFunc] in this time.
func (c *clock) AfterFunc(d time.Duration, f func()) turns.Timer {
	t := &timer{clock: c, f: f, index: -1}
	t.Reset(d)
	return t
}

// moveTo advances the time, stopping at each timer that becomes due.
func (c *clock) moveTo(to time.Time) {
	for len(c.timers) > 0 && !c.timers[0].at.After(to) {
		c.fire()
	}
	c.now = to
}

// drain advances the time until no timer is left.
func (c *clock) drain() {
	for len(c.timers) > 0 {
		c.fire()
	}
}

func (c *clock) fire() {
	t := heap.Pop(&c.timers).(*timer)
	if t.at.After(c.now) {
		c.now = t.at
	}
	t.f()
	c.fired()
}

// timer is a timer of a clock.
type timer struct {
	clock *clock
	at    time.Time
	order uint64 // order of setting; timers of the same time fire in this order
	f     func()
	index int // in the timers of the clock; -1: it is not running
}

// Reset implements [turns.Timer].
func (t *timer) Reset(d time.Duration) bool {
	active := t.Stop()
	t.clock.set++
	t.at, t.order = t.clock.now.Add(max(d, 0)), t.clock.set
	heap.Push(&t.clock.timers, t)
	return active
}

// Stop implements [turns.Timer].
func (t *timer) Stop() bool {
	if t.index < 0 {
		return false
	}
	heap.Remove(&t.clock.timers, t.index)
	return true
}

// timers is a heap of running timers, the earliest first.
type timers []*timer

// Len implements [heap.Interface].
func (h timers) Len() int { return len(h) }

// Less implements [heap.Interface].
func (h timers) Less(i, j int) bool {
	return cmp.Or(h[i].at.Compare(h[j].at), cmp.Compare(h[i].order, h[j].order)) < 0
}

// Swap implements [heap.Interface].
func (h timers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements [heap.Interface].
func (h *timers) Push(x any) {
	t := x.(*timer)
	t.index = len(*h)
	*h = append(*h, t)
}

// Pop implements [heap.Interface].
func (h *timers) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	t.index = -1
	return t
}
