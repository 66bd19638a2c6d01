package ratelimit

import "math"

// MaxCount is the most that one frame counts; more is cut off.
const MaxCount = math.MaxInt32

// slot is what was admitted in one frame. The decision counts all three.
type slot struct {
	g uint32 // known to be in the database
	p uint32 // in the pending write, whose outcome is not known
	i uint32 // admitted here since
}

func (s slot) total() int64 {
	return min(int64(s.g)+int64(s.p)+int64(s.i), MaxCount)
}

func (s *slot) addG(n int64) { s.g = clamp(int64(s.g) + n) }

// clamp cuts a count off at both ends.
func clamp(n int64) uint32 {
	if n < 0 {
		return 0
	}
	if n > MaxCount {
		return MaxCount
	}
	return uint32(n)
}

func (s *slot) add(o slot) {
	s.addG(int64(o.g))
	s.p += o.p
	s.i += o.i
}

// settle counts the pending write as known.
func (s *slot) settle() {
	s.addG(int64(s.p))
	s.p = 0
}

// Counter is one key under one limit, as the syncer holds it. Its frames are slots()[0], the newest,
// which begins at start, and those before it, one frame apart.
//
// Its time never runs backwards: see observe.
type Counter struct {
	entry  *entry
	start  int64    // of the newest frame, milliseconds since the epoch
	at     int64    // latest time seen
	near   [2]slot  // the frames of a limit with one frame per window
	far    *[]slot  // the frames of any other limit
	sync   syncInfo // what the syncer knows; see queue.go
	extras *extras  // what few counters have
}

// slots returns the frames, newest first.
func (c *Counter) slots() []slot {
	if c.far != nil {
		return *c.far
	}
	return c.near[:]
}

func (c *Counter) init(e *entry, r *rule, ms int64) {
	c.entry, c.start, c.at = e, r.align(ms), ms
	if r.slots() > len(c.near) {
		far := make([]slot, r.slots())
		c.far = &far
	}
}

// observe brings the counter to the time ms and returns the time to decide
// at. That is never before the latest time it has seen, so that a clock which
// is set back cannot free a limited client. Where the clock goes back further
// than a window, it was wrong before: the counts then move back with it by
// whole frames, because otherwise they would stand still until it caught up.
func (c *Counter) observe(r *rule, ms int64) int64 {
	if ms < c.at {
		if c.at-ms > r.window {
			back := (c.at - ms) / r.frame * r.frame
			c.start -= back
			c.at -= back
		}
		return max(ms, c.at)
	}
	c.at = ms
	if ms-c.start >= r.frame {
		c.shift(r, r.align(ms))
	}
	return ms
}

// shift makes the frame that begins at start the newest.
func (c *Counter) shift(r *rule, start int64) {
	slots := c.slots()
	n := min((start-c.start)/r.frame, int64(len(slots)))
	for _, s := range slots[len(slots)-int(n):] {
		if s.i > 0 {
			c.entry.shard.all.expired.Add(int64(s.i)) // too old to matter: never to be written
		}
	}
	copy(slots[n:], slots)
	clear(slots[:n])
	c.start = start
	c.at = max(c.at, start)
}

// count counts n requests as admitted here, now.
func (c *Counter) count(n int64) {
	cur := &c.slots()[0]
	cur.i = clamp(int64(cur.i) + n)
}

// unflushed is what is not yet known to be in the database.
func (c *Counter) unflushed() (n int64) {
	for _, s := range c.slots() {
		n += int64(s.p) + int64(s.i)
	}
	return n
}

// inFlight is what no write has taken up yet.
func (c *Counter) inFlight() (n int64) {
	for _, s := range c.slots() {
		n += int64(s.i)
	}
	return n
}

// known is what is known to be in the database.
func (c *Counter) known() (n int64) {
	for _, s := range c.slots() {
		n += int64(s.g)
	}
	return n
}

// live reports whether anything is counted at all.
func (c *Counter) live() bool {
	for _, s := range c.slots() {
		if s != (slot{}) {
			return true
		}
	}
	return false
}

// index returns which slot the frame beginning at start is, and whether there
// is one. A frame after the newest is counted as the newest.
func (c *Counter) index(r *rule, start int64) (int, bool) {
	i := max((c.start-r.align(start))/r.frame, 0)
	return int(i), i < int64(len(c.slots()))
}
