package clock

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Tolerance is how far two clocks may differ and still agree.
const Tolerance = time.Second

// Bounds of slewing: a difference is made up for in about slewTime, but process
// time runs at most maxRate faster or slower than monotonic time.
const (
	slewTime = 10 * time.Second
	maxRate  = 0.05
)

// Clock is the time of a process. It is safe for concurrent use.
type Clock struct {
	wall func() time.Time
	line atomic.Pointer[line] // nil while it is changed
	mu   sync.Mutex           // one change of the line at a time
	last State
	// begun says that process time was the store's once. Before, it is that of
	// the wall clock, which has no vote of its own beside it.
	hadStore bool
}

// line is process time as a function of monotonic time.
type line struct {
	base time.Time // has a monotonic reading
	at   time.Time // process time at base; has none
	rate float64   // how much faster than monotonic time
}

// after is process time so long after base.
func (l *line) after(elapsed time.Duration) time.Time {
	return l.at.Add(elapsed + time.Duration(float64(elapsed)*l.rate))
}

// New returns a clock that begins with the time of the wall clock, [time.Now] if
// wall is nil, until [Clock.Begin] sets it.
func New(wall func() time.Time) *Clock {
	if wall == nil {
		wall = time.Now
	}
	c := &Clock{wall: wall}
	c.line.Store(&line{base: time.Now(), at: wall().Round(0)})
	return c
}

// Now returns process time. A call never returns less than one that returned
// before it began.
func (c *Clock) Now() time.Time {
	for {
		l := c.line.Load()
		if l == nil {
			return c.nowAfterChange()
		}
		// A line is good up to its replacement, which begins where it ended.
		if now := l.after(time.Since(l.base)); c.line.Load() == l {
			return now
		}
	}
}

// changed waits for the change of the line, and returns process time.
func (c *Clock) nowAfterChange() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.line.Load()
	return l.after(time.Since(l.base))
}

// Reading is what the clock of the store said just now.
type Reading struct {
	Time  time.Time
	Error time.Duration // at most: half of the round trip
}

// State is how the clocks compare.
type State struct {
	Wall  time.Duration // by which the wall clock is ahead of process time
	Store time.Duration // by which the store is; 0 if it could not be read
	// Alone is the clock that disagrees with the others.
	Alone Source
	// Stepped is by how much process time was just set forwards.
	Stepped time.Duration
}

// Source names a clock.
type Source string

// The clocks. NoClock is alone where all agree, AllClocks are where none do.
const (
	NoClock   Source = ""
	Wall      Source = "wall"
	Store     Source = "store"
	Process   Source = "process"
	AllClocks Source = "all"
)

// Begin sets process time, forwards or backwards, before anything goes by it: to
// the store's, or, where wall clock and store disagree, to the time that most of
// the clocks agree on: those two and the other processes'. peers are the process
// times of those now. Without a reading the wall clock stays.
func (c *Clock) Begin(store *Reading, peers []time.Time) State {
	c.mu.Lock()
	defer c.mu.Unlock()
	if store != nil {
		now := store.Time
		if wall := c.wall().Round(0); !agree(wall, store.Time, store.Error) {
			now = majority(append([]time.Time{store.Time, wall}, peers...))
		}
		c.line.Store(&line{base: time.Now(), at: now.Round(0)})
		c.hadStore = true
	}
	c.last = c.compare(store)
	return c.last
}

// Adjust compares the clocks, and slews or steps process time where the package
// documentation says so. store is nil if its clock could not be read, or if it
// has none: then nothing changes.
func (c *Clock) Adjust(store *Reading, peers []time.Time) State {
	c.mu.Lock()
	defer c.mu.Unlock()
	st := c.compare(store)
	now := c.Now()
	if store == nil {
		c.setLine(0, 0)
		c.last = st
		return st
	}
	target := c.target(now, store, st, peers)
	ahead := target.Sub(now)
	switch {
	case ahead > Tolerance+store.Error:
		st.Stepped = ahead
		c.setLine(ahead, 0)
	case ahead.Abs() <= store.Error:
		c.setLine(0, 0)
	default:
		c.setLine(0, min(max(float64(ahead)/float64(slewTime), -maxRate), maxRate))
	}
	c.last = st
	return st
}

// target is the time that process time should be.
func (c *Clock) target(now time.Time, store *Reading, st State, peers []time.Time) time.Time {
	wall := now.Add(st.Wall)
	if !c.hadStore { // the store could not be read until now
		target := store.Time
		if !agree(wall, target, store.Error) {
			target = majority(append([]time.Time{target, wall}, peers...))
		}
		c.hadStore = agree(now, target, store.Error)
		return target
	}
	switch st.Alone {
	case Store:
		return now
	case AllClocks:
		if target := majority(append([]time.Time{now, store.Time, wall}, peers...)); !agree(target, now, 0) {
			return target
		}
		return now
	default:
		return store.Time
	}
}

// State returns how the clocks compared when they were last looked at.
func (c *Clock) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// run sets process time forwards by a step, and makes it go on at that rate. The
// old line ends at the very moment at which the new one begins: it is taken away
// before that moment is read, so no call of Now is ahead of it.
func (c *Clock) setLine(step time.Duration, rate float64) {
	old := c.line.Swap(nil)
	base := time.Now()
	c.line.Store(&line{base: base, at: old.after(base.Sub(old.base)).Add(step), rate: rate})
}

func (c *Clock) compare(store *Reading) (st State) {
	now := c.Now()
	st.Wall = c.wall().Round(0).Sub(now)
	wall := st.Wall.Abs() <= Tolerance
	if store == nil {
		if !wall {
			st.Alone = Wall
		}
		return st
	}
	st.Store = store.Time.Sub(now)
	switch near := st.Store.Abs() <= Tolerance+store.Error; {
	case near && wall:
	case near:
		st.Alone = Wall
	case wall:
		st.Alone = Store
	case (st.Store - st.Wall).Abs() <= Tolerance+store.Error:
		st.Alone = Process
	default:
		st.Alone = AllClocks
	}
	return st
}

func agree(a, b time.Time, within time.Duration) bool {
	return a.Sub(b).Abs() <= Tolerance+within
}

// majority returns the time that most of the others agree with; of several the
// first.
func majority(times []time.Time) time.Time {
	votes := make([]int, len(times))
	for i, a := range times {
		for _, b := range times {
			if agree(a, b, 0) {
				votes[i]++
			}
		}
	}
	return times[slices.Index(votes, slices.Max(votes))]
}
