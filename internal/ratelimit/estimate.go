package ratelimit

import (
	"slices"
	"time"
)

// The estimate at a time is a rational number with the denominator r.frame. It is only compared
// with integers, so the arithmetic below is exact.
//
// All products stay below 2^63: a frame's total is below 2^31, a limit below 2^30, and a window
// below 2^32 milliseconds.

// frames is one counter's frames and intermediate results of its estimate.
type frames struct {
	rule      *rule
	slots     []slot // newest first; the window moves past the last
	start     int64  // start of the newest, milliseconds since the epoch
	instances int64  // see slot.total; 0: nothing may be admitted
	whole     int64  // sum of the frames that count in full
	oldest    int64  // count of the frame that the window moves past

	lease  *lease // nil: the counter needs no permits
	usable int64  // permits that can be used now

	used         int64 // the estimate at the time of the decision, rounded down
	free, target int64 // the estimate falls below target at free; 0: not computed
}

// sum sets whole and oldest from the slots.
func (f *frames) sum() {
	last := len(f.slots) - 1
	f.whole, f.oldest = totalOf(f.slots[:last], f.instances), f.slots[last].total(f.instances)
}

// sumStrict is sum for a strict limit: a frame counts in full while any part of it is inside the
// window.
func (f *frames) sumStrict() { f.whole, f.oldest = totalOf(f.slots, f.instances), 0 }

func totalOf(slots []slot, instances int64) (n int64) {
	for i := range slots {
		n += slots[i].total(instances)
	}
	return n
}

// count adds n requests to the newest frame.
func (f *frames) count(n int64) {
	f.slots[0].count(n)
	f.whole += n * f.instances
}

// scaled returns the estimate at ms in two parts: whole requests, and a remainder in units of
// 1/r.frame requests. The remainder may exceed one request.
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

// estimate returns the estimate at ms as a floating-point number, for display.
func (f *frames) estimate(r *rule, ms int64) float64 {
	whole, rest := f.scaled(r, ms)
	return float64(whole) + float64(rest)/float64(r.frame)
}

// firstBelow returns the earliest time at or after ms, in milliseconds, at which the estimate is
// below target if nothing more is counted. The target must be at least 1.
func (f *frames) firstBelow(r *rule, ms, target int64) int64 {
	if f.whole+f.oldest < target {
		return ms
	}
	switch {
	case r.Strict:
		return f.firstBelowStrict(r, ms, target)
	case r.Algorithm == Fixed:
		if f.whole < target {
			return ms
		}
		return f.start + r.frame
	case r.Algorithm == Weighted:
		return f.firstBelowWeighted(r, ms, target)
	}
	// Follow the window from frame to frame. In each frame the next newer slot becomes the oldest
	// and shrinks.
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

// firstBelowStrict is firstBelow for a strict limit: each frame leaves the window as a whole.
func (f *frames) firstBelowStrict(r *rule, ms, target int64) int64 {
	whole := f.whole
	for j := len(f.slots) - 1; j >= 0 && whole >= target; j-- {
		whole -= f.slots[j].total(f.instances)
		ms = max(ms, f.start+int64(r.Frames+1-j)*r.frame)
	}
	return ms
}

// shrunkBelow returns the least e >= from with count x (frame - e) < room x frame. This is how many
// milliseconds of a frame must leave the window until less than room of its count is inside. room
// must be at least 1. The result is at most frame.
func shrunkBelow(count, room, frame, from int64) int64 {
	from = max(from, 0)
	need := room * frame
	if count*(frame-from) < need {
		return from
	}
	return frame - (need+count-1)/count + 1
}

// firstBelowWeighted is firstBelow for [Weighted]. Within a frame the estimate moves from the
// previous count to the current one. In the next frame it moves from the current count to zero.
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

// Forecast predicts when successive requests of a key will pass if nothing else is counted. Each
// request is counted at the millisecond at which it passes, so it delays later ones. A Forecast
// works on a copy of the counters and never changes them.
type Forecast struct {
	all    []frames
	at     int64 // when the latest request passed
	spread int64 // see Spread
}

// Forecast starts a forecast for a key. It is exact to the millisecond as long as no other process
// counts the key and its limits need no permits. It ignores limits for which the key is not in
// memory. It always ignores the limits of the source and the total, because other keys use them
// too.
func (c *Counters) Forecast(now time.Time, k Key, e *Effective) *Forecast {
	f := &Forecast{at: millis(now)}
	var q request
	q.init(c, k, e.For(k), e.Own(), 1)
	p := &q.parts[0]
	if p.s == nil {
		return f
	}
	s := p.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.find(0, f.at, false); p.first == 0 {
		return f
	}
	others := []int64{} // for each limit, how many other processes count it
	for num, r := range p.applied() {
		var d Decision
		var one frames
		s.view(&one, num, r, f.at, &d)
		one.own()
		f.all, others = append(f.all, one), append(others, s.holders(s.hotOf(num))-1)
	}
	if len(f.all) > 0 {
		_, binding := retryAfter(f.all, f.at, 1)
		r := f.all[binding].rule
		f.spread = others[binding] * r.window / r.Requests
	}
	return f
}

// own makes f independent of its counter. Unused permits are uncounted.
func (f *frames) own() {
	f.slots = slices.Clone(f.slots)
	if f.lease != nil {
		f.slots[0].count(-f.lease.held[0])
		f.slots[1].count(-f.lease.held[1])
		f.lease = nil
	}
}

// Spread returns the time over which processes should spread their requests once the limit has room
// again. All processes expect room for one request at the same moment, and learn about the others'
// requests only later. In the time Spread, the limit admits one request for each other process that
// counts the key. Spread is 0 if there is no other process.
func (f *Forecast) Spread() time.Duration { return time.Duration(f.spread) * time.Millisecond }

// Next returns when the next request will pass. It is not before the start of the forecast.
func (f *Forecast) Next() time.Time { return time.UnixMilli(f.next()) }

func (f *Forecast) next() int64 {
	if f.all == nil {
		return f.at
	}
	wait, _ := retryAfter(f.all, f.at, 1)
	return f.at + wait.Milliseconds()
}

// Admit counts the request that passes at Next.
func (f *Forecast) Admit() {
	f.at = f.next()
	for i := range f.all {
		f.all[i].admitAt(f.at)
	}
}

// admitAt counts one request at ms. f must be independent of any counter.
func (f *frames) admitAt(ms int64) {
	r := f.rule
	start := r.newest(ms)
	if n := int(min((start-f.start)/r.frame, int64(len(f.slots)))); n > 0 {
		copy(f.slots[n:], f.slots)
		clear(f.slots[:n])
		f.start = start
		if r.Strict {
			f.sumStrict()
		} else {
			f.sum()
		}
	}
	f.countAdmitted(r, 1)
}
