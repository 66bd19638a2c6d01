package ratelimit

// The estimate at a time ms, with elapsed milliseconds of the newest frame, is
// a rational number with the denominator r.frame. It is only ever compared with
// integers, so everything below is exact.
//
// All products stay below 2^63: a frame's total is below 2^31, a limit below
// 2^30, and a window below 2^32 milliseconds.

// frames is what the estimate is made from.
type frames struct {
	slots     []slot // the newest first; the last moves out of the window
	start     int64  // of the newest, milliseconds since the epoch
	instances int64  // see slot.total
	whole     int64  // what counts in full
	oldest    int64  // what moves out of the window

	used         int64 // the estimate at the time of the decision, rounded down
	free, target int64 // when the estimate falls below target, where that is known
}

// sum adds the frames up.
func (f *frames) sum() {
	last := len(f.slots) - 1
	f.whole, f.oldest = 0, f.slots[last].total(f.instances)
	for i := range f.slots[:last] {
		f.whole += f.slots[i].total(f.instances)
	}
}

// count counts n requests in the newest frame.
func (f *frames) count(n int64) {
	f.slots[0].count(n)
	f.whole += n * f.instances
}

// scaled returns the estimate in two parts: whole requests, and a rest in
// units of 1/r.frame requests, which may be more than one request.
func (f *frames) scaled(r *rule, ms int64) (whole, rest int64) {
	elapsed := min(max(ms-f.start, 0), r.frame)
	switch r.Algorithm {
	case Fixed:
		return f.whole, 0
	case Weighted:
		return 0, elapsed*f.whole + (r.frame-elapsed)*f.oldest
	default:
		return f.whole, (r.frame - elapsed) * f.oldest
	}
}

// floor returns the estimate at ms, rounded down.
func (f *frames) floor(r *rule, ms int64) int64 {
	whole, rest := f.scaled(r, ms)
	if rest == 0 {
		return whole
	}
	return whole + rest/r.frame
}

// estimate returns the estimate at ms, for people to look at.
func (f *frames) estimate(r *rule, ms int64) float64 {
	whole, rest := f.scaled(r, ms)
	return float64(whole) + float64(rest)/float64(r.frame)
}

// firstBelow returns the earliest time, from ms on, at which the estimate is
// below target if nothing more is counted. The target is at least 1.
func (f *frames) firstBelow(r *rule, ms, target int64) int64 {
	switch r.Algorithm {
	case Fixed:
		if f.whole < target {
			return ms
		}
		return f.start + r.frame
	case Weighted:
		return f.firstBelowWeighted(r, ms, target)
	default:
		return f.firstBelowSliding(r, ms, target)
	}
}

// firstBelowSliding follows the window as it moves on: in each frame of time
// another slot is the oldest, and shrinks.
func (f *frames) firstBelowSliding(r *rule, ms, target int64) int64 {
	whole, oldest := f.whole, f.oldest
	frameStart := f.start
	for j := len(f.slots) - 1; ; j-- {
		if whole < target {
			if e := shrunkBelow(oldest, target-whole, r.frame, ms-frameStart); e < r.frame {
				return frameStart + e
			}
		}
		frameStart += r.frame
		if j == 0 {
			return max(frameStart, ms)
		}
		oldest = f.slots[j-1].total(f.instances)
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
func (f *frames) firstBelowWeighted(r *rule, ms, target int64) int64 {
	cur, prev := f.whole, f.oldest
	elapsed, need := max(ms-f.start, 0), target*r.frame
	if elapsed*cur+(r.frame-elapsed)*prev < need {
		return ms
	}
	if prev > cur {
		if e := r.frame*(prev-target)/(prev-cur) + 1; e < r.frame {
			return f.start + e
		}
	}
	next := f.start + r.frame
	if e := shrunkBelow(cur, target, r.frame, 0); e < r.frame {
		return next + e
	}
	return next + r.frame
}
