package ratelimit

// The estimate at a time ms, with elapsed milliseconds of the newest frame, is
// a rational number with the denominator r.frame. It is only ever compared with
// integers, so everything below is exact.
//
// All products stay below 2^63: a slot is below 2^31, a limit below 2^30, and
// a window below 2^32 milliseconds.

// window splits the counts as the algorithm sees them: what counts in full,
// and the frame that moves out of the window, oldest, at slots()[len-1].
func (c *Counter) window() (whole, oldest int64) {
	slots := c.slots()
	last := len(slots) - 1
	for _, s := range slots[:last] {
		whole += s.total()
	}
	return whole, slots[last].total()
}

// scaled returns the estimate in two parts: whole requests, and a rest in
// units of 1/r.frame requests, which may be more than one request.
func (c *Counter) scaled(r *rule, ms int64) (whole, rest int64) {
	elapsed := min(max(ms-c.start, 0), r.frame)
	whole, oldest := c.window()
	switch r.Algorithm {
	case Fixed:
		return whole, 0
	case Weighted:
		return 0, elapsed*whole + (r.frame-elapsed)*oldest
	default:
		return whole, (r.frame - elapsed) * oldest
	}
}

// floor returns the estimate at ms, rounded down.
func (c *Counter) floor(r *rule, ms int64) int64 {
	whole, rest := c.scaled(r, ms)
	if rest == 0 {
		return whole
	}
	return whole + rest/r.frame
}

// estimate returns the estimate at ms, for people to look at.
func (c *Counter) estimate(r *rule, ms int64) float64 {
	whole, rest := c.scaled(r, ms)
	return float64(whole) + float64(rest)/float64(r.frame)
}

// firstBelow returns the earliest time, from ms on, at which the estimate is
// below target if nothing more is counted. The target is at least 1.
func (c *Counter) firstBelow(r *rule, ms, target int64) int64 {
	switch r.Algorithm {
	case Fixed:
		if c.slots()[0].total() < target {
			return ms
		}
		return c.start + r.frame
	case Weighted:
		return c.firstBelowWeighted(r, ms, target)
	default:
		return c.firstBelowSliding(r, ms, target)
	}
}

// firstBelowSliding follows the window as it moves on: in each frame of time
// another slot is the oldest, and shrinks.
func (c *Counter) firstBelowSliding(r *rule, ms, target int64) int64 {
	slots := c.slots()
	whole, oldest := c.window()
	frameStart := c.start
	for j := len(slots) - 1; ; j-- {
		if whole < target {
			if e := shrunkBelow(oldest, target-whole, r.frame, ms-frameStart); e < r.frame {
				return frameStart + e
			}
		}
		frameStart += r.frame
		if j == 0 {
			return frameStart
		}
		oldest = slots[j-1].total()
		whole -= oldest
	}
}

// shrunkBelow returns the least e >= from with count x (frame - e) < room x frame:
// how much of a frame has to move out of the window. It is frame at most.
func shrunkBelow(count, room, frame, from int64) int64 {
	from = max(from, 0)
	need := room * frame
	if count*(frame-from) < need {
		return from
	}
	return frame - (need+count-1)/count + 1
}

// firstBelowWeighted: within a frame the estimate moves from the previous count
// to the current one, and once nothing more is counted from there to zero.
func (c *Counter) firstBelowWeighted(r *rule, ms, target int64) int64 {
	cur, prev := c.near[0].total(), c.near[1].total()
	elapsed, need := max(ms-c.start, 0), target*r.frame
	if elapsed*cur+(r.frame-elapsed)*prev < need {
		return ms
	}
	if prev > cur {
		if e := r.frame*(prev-target)/(prev-cur) + 1; e < r.frame {
			return c.start + e
		}
	}
	next := c.start + r.frame
	if e := shrunkBelow(cur, target, r.frame, 0); e < r.frame {
		return next + e
	}
	return next + r.frame
}
