package clock

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Tolerance is how far two clocks may differ and still agree. The error of a reading is added to
// it.
const Tolerance = time.Second

// Bounds of slewing. A difference is corrected in about slewTime, but process time runs at most
// maxRate faster or slower than monotonic time.
const (
	slewTime = 10 * time.Second
	maxRate  = 0.05
)

// Bounds of [Clock.Uncertainty].
const (
	// resolution is the resolution of a store reading.
	resolution = time.Millisecond
	// driftPart bounds the drift of monotonic time to one part in driftPart: 500 ppm, the most by
	// which kernels slew a clock.
	driftPart = 2000
	// Unknown is the uncertainty of a clock that does not follow the store.
	Unknown = time.Duration(1<<63 - 1)
	// maxMoved bounds the sum of the moves of the wall clock, to prevent an overflow.
	maxMoved = Unknown / 8
)

// Clock keeps process time. It is safe for concurrent use.
type Clock struct {
	wall func() time.Time
	line atomic.Pointer[line] // nil while it is replaced
	mu   sync.Mutex           // guards the fields below, and is held while line is replaced
	last State
	// hadStore is set once the store has set process time. Before that, process time follows the
	// wall clock, so the two do not count as two clocks.
	hadStore bool
	measured measure // the most exact recent reading that process time follows
	watched  pair    // when the wall clock was last checked
}

// pair is the wall clock and monotonic time at one moment.
type pair struct {
	wall, monotonic time.Time
}

// measure compares process time with one reading of the store's clock.
type measure struct {
	base    time.Time     // when it was taken, with a monotonic reading; zero: no reading
	process time.Time     // process time at base
	ahead   time.Duration // how far the store was ahead of process
	err     time.Duration
}

// line is process time as a function of monotonic time.
type line struct {
	base time.Time // has a monotonic reading
	at   time.Time // process time at base, without a monotonic reading
	rate float64   // how much faster than monotonic time
}

// after returns process time at an elapsed time after base. Slewing ends after slewTime. The
// difference is then corrected, and process time must not overshoot if no further reading arrives.
func (l *line) after(elapsed time.Duration) time.Time {
	if l.rate != 0 {
		elapsed += time.Duration(float64(min(elapsed, slewTime)) * l.rate)
	}
	return l.at.Add(elapsed)
}

// New returns a clock that shows the time of the wall clock until [Clock.Begin] sets it. A nil wall
// means [time.Now].
func New(wall func() time.Time) *Clock {
	if wall == nil {
		wall = time.Now
	}
	c := &Clock{wall: wall}
	c.line.Store(&line{base: time.Now(), at: wall().Round(0)})
	return c
}

// Now returns process time. It never returns less than an earlier call that has already returned.
func (c *Clock) Now() time.Time {
	for {
		l := c.line.Load()
		if l == nil {
			return c.nowAfterChange()
		}
		// A line is valid until it is replaced. The next one begins where it ends.
		if now := l.after(time.Since(l.base)); c.line.Load() == l {
			return now
		}
	}
}

// nowAfterChange waits until the line has been replaced, then returns process time.
func (c *Clock) nowAfterChange() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at(time.Now())
}

// at returns process time at a moment that is not before the start of the line. c.mu must be held.
func (c *Clock) at(moment time.Time) time.Time {
	l := c.line.Load()
	return l.after(moment.Sub(l.base))
}

// Reading is a reading of the store's clock.
type Reading struct {
	Time  time.Time
	Error time.Duration // bound of the error: half the round trip
	At    time.Time     // when it was taken, with a monotonic reading
}

// NewReading returns a reading of the store's clock. theirs is the returned time. began and at are
// the start and end of the call.
func NewReading(theirs, began, at time.Time) *Reading {
	half := at.Sub(began) / 2
	return &Reading{Time: theirs.Add(half), Error: half, At: at}
}

// aged returns the reading extrapolated to a later moment, with a larger error.
func (r *Reading) aged(at time.Time) *Reading {
	age := at.Sub(r.At)
	return &Reading{Time: r.Time.Add(age), Error: r.Error + age/driftPart, At: at}
}

// State is the result of comparing the clocks.
type State struct {
	Wall    time.Duration // how far the wall clock is ahead of process time
	Store   time.Duration // how far the store is ahead of process time; 0 if it could not be read
	Alone   Source        // the clock that disagrees with the others
	Stepped time.Duration // how far process time was stepped forwards after the comparison
}

// Source names a clock.
type Source string

// The clocks. NoClock means that all agree, AllClocks that no two agree.
const (
	NoClock   Source = ""
	Wall      Source = "wall"
	Store     Source = "store"
	Process   Source = "process"
	AllClocks Source = "all"
)

// Begin sets process time, forwards or backwards, before its first use. It sets process time to the
// store's time. If wall clock and store disagree, it uses the time that most clocks agree on,
// including the clocks of other processes. store is nil if the store's clock could not be read.
// Process time then continues to follow the wall clock. peers are the present process times of the
// other processes. Begin returns how the clocks compare afterwards.
func (c *Clock) Begin(store *Reading, peers []time.Time) State {
	c.mu.Lock()
	defer c.mu.Unlock()
	if store != nil {
		store = store.aged(time.Now())
		now := store.Time
		if wall := c.wall().Round(0); !agree(wall, store.Time, store.Error) {
			now = majority(append([]time.Time{store.Time, wall}, peers...))
		}
		c.line.Store(&line{base: store.At, at: now.Round(0)})
		c.hadStore = true
		c.follow(store, now, false)
	}
	c.watch()
	c.last = c.compare(store)
	return c.last
}

// follow records a reading if process time is set or slewed to it. If a reading only confirms
// process time and is less exact than an earlier one, follow ignores it. If process time was set to
// another time, its difference to the store's time is unknown.
func (c *Clock) follow(store *Reading, target time.Time, confirmed bool) {
	if !target.Equal(store.Time) {
		c.measured = measure{}
		return
	}
	store = store.aged(time.Now())
	now := c.at(store.At)
	m := measure{base: store.At, process: now, ahead: store.Time.Sub(now), err: store.Error + resolution}
	if !confirmed || m.ahead.Abs()+m.err < c.uncertainty() {
		c.measured = m
	}
}

// Watch checks how far the wall clock has moved against monotonic time since the last check, and
// adds the move to the uncertainty. Either the wall clock was set, or the machine was suspended.
// Only a new reading shows which. The other methods that compare the clocks call it too.
func (c *Clock) Watch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watch()
}

func (c *Clock) watch() {
	p := pair{wall: c.wall().Round(0), monotonic: time.Now()}
	if was := c.watched; !was.wall.IsZero() {
		moved := (p.wall.Sub(was.wall) - p.monotonic.Sub(was.monotonic)).Abs()
		c.measured.err = min(c.measured.err+min(moved, maxMoved), maxMoved)
	}
	c.watched = p
}

// Uncertainty returns how far process time may differ from the store's time. It is the sum of the
// error of the latest reading that process time follows, the part that is not slewed yet, the drift
// of clocks, and the moves of the wall clock since then. It is [Unknown] if process time does not
// follow the store. If the store disagrees with both other clocks, process time does not follow it,
// and Uncertainty assumes that the store is wrong.
func (c *Clock) Uncertainty() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.uncertainty()
}

func (c *Clock) uncertainty() time.Duration {
	m := &c.measured
	if m.base.IsZero() {
		return Unknown
	}
	now := time.Now()
	passed := now.Sub(m.base)
	slewed := c.at(now).Sub(m.process) - passed
	return (m.ahead - slewed).Abs() + m.err + passed/driftPart
}

// Adjust compares the clocks and returns how they compared. It slews or steps process time as the
// package documentation describes. store is nil if the store's clock could not be read or does not
// exist. Process time is then neither slewed nor stepped.
func (c *Clock) Adjust(store *Reading, peers []time.Time) State {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watch()
	if store == nil {
		c.last = c.compare(nil)
		c.setLine(0, 0)
		return c.last
	}
	store = store.aged(time.Now())
	now := c.at(store.At)
	st := c.compare(store)
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
	if !target.Equal(now) || target.Equal(store.Time) { // otherwise process time continues as before
		c.follow(store, target, ahead.Abs() <= store.Error)
	}
	c.last = st
	return st
}

// target returns the correct process time.
func (c *Clock) target(now time.Time, store *Reading, st State, peers []time.Time) time.Time {
	wall := now.Add(st.Wall)
	if !c.hadStore { // process time has never followed the store
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

// State returns the result of the last comparison.
func (c *Clock) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// setLine steps process time forwards and sets its rate. The old line ends at the moment at which
// the new one begins. It is removed before that moment is read, so no call of Now can be ahead of
// the new line.
func (c *Clock) setLine(step time.Duration, rate float64) {
	old := c.line.Swap(nil)
	base := time.Now()
	c.line.Store(&line{base: base, at: old.after(base.Sub(old.base)).Add(step), rate: rate})
}

// compare compares the clocks now. store may be nil.
func (c *Clock) compare(store *Reading) (st State) {
	at := time.Now()
	now := c.at(at)
	st.Wall = c.wall().Round(0).Sub(now)
	wall := st.Wall.Abs() <= Tolerance
	if store == nil {
		if !wall {
			st.Alone = Wall
		}
		return st
	}
	st.Store = store.aged(at).Time.Sub(now)
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

// agree reports whether two clocks agree. within is the error of their difference.
func agree(a, b time.Time, within time.Duration) bool {
	return a.Sub(b).Abs() <= Tolerance+within
}

// majority returns the time that most of the times agree with, or the first of several such times.
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
