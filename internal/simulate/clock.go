package simulate

import (
	"slices"
	"time"

	"oauth-server/internal/limiter"
)

// clock is a time that only moves when told to. It calls the timers that become due on the way.
type clock struct {
	now    time.Time
	timers []*timer // that run, the earliest first; those of one time in the order of setting
	fired  func()   // after each call of a timer
}

// Now returns the current time.
func (c *clock) Now() time.Time { return c.now }

// AfterFunc is [time.AfterFunc] in this time.
func (c *clock) AfterFunc(d time.Duration, f func()) limiter.Timer {
	t := &timer{clock: c, f: f}
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
	t := c.timers[0]
	t.Stop()
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
	f     func()
}

// Reset implements [limiter.Timer].
func (t *timer) Reset(d time.Duration) bool {
	active, c := t.Stop(), t.clock
	t.at = c.now.Add(max(d, 0))
	i, _ := slices.BinarySearchFunc(c.timers, t.at, func(o *timer, at time.Time) int {
		if o.at.After(at) {
			return 1
		}
		return -1
	})
	c.timers = slices.Insert(c.timers, i, t)
	return active
}

// Stop implements [limiter.Timer].
func (t *timer) Stop() bool {
	i := slices.Index(t.clock.timers, t)
	if i < 0 {
		return false
	}
	t.clock.timers = slices.Delete(t.clock.timers, i, i+1)
	return true
}
