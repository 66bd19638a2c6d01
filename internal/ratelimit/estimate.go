package ratelimit

import (
	"math"
	"time"
)

// The estimate at a time is a rational number with the denominator FrameMS. It is only compared
// with integers, so the arithmetic below is exact.
//
// All products stay below 2^63: a frame's total is below 2^31, a limit below 2^30, and a window
// below 2^32 milliseconds.

// Frames is one counter's frames and intermediate results of its estimate.
type Frames struct {
	Rule      *Rule
	Slots     []Slot // newest first; the window moves past the last
	Start     int64  // start of the newest, milliseconds since the epoch
	Instances int64  // see Slot.Total; 0: nothing may be admitted
	Whole     int64  // sum of the frames that count in full
	oldest    int64  // count of the frame that the window moves past

	Permits *int64 // unused permits of the present frame; nil: the counter needs none
	Usable  int64  // permits that can be used now

	Used         int64 // the estimate at the time of the decision, rounded down
	free, target int64 // the estimate falls below target at free; 0: not computed
}

// Sum sets Whole and oldest from the slots. Under a strict limit a frame counts in full while any
// part of it is inside the window.
func (f *Frames) Sum(r *Rule) {
	last := len(f.Slots) - 1
	whole, oldest := int64(0), f.Slots[last].Total(f.Instances)
	for i := range f.Slots[:last] {
		whole += f.Slots[i].Total(f.Instances)
	}
	if r.Strict {
		whole, oldest = whole+oldest, 0
	}
	f.Whole, f.oldest = whole, oldest
}

// count adds n requests to the newest frame.
func (f *Frames) count(n int64) {
	f.Slots[0].Count(n)
	f.Whole += n * f.Instances
}

// scaled returns the estimate at ms in two parts: whole requests, and a remainder in units of
// 1/FrameMS requests. The remainder may exceed one request.
func (f *Frames) scaled(r *Rule, ms int64) (whole, rest int64) {
	elapsed := min(max(ms-f.Start, 0), r.FrameMS)
	switch r.Algorithm {
	case Fixed:
		return f.Whole, 0
	case Weighted:
		return 0, elapsed*f.Whole + (r.FrameMS-elapsed)*f.oldest
	default:
		return f.Whole, (r.FrameMS - elapsed) * f.oldest
	}
}

// Floor returns the estimate at ms, rounded down.
func (f *Frames) Floor(r *Rule, ms int64) int64 {
	whole, rest := f.scaled(r, ms)
	if rest == 0 {
		return whole
	}
	return whole + rest/r.FrameMS
}

// Estimate returns the estimate at ms as a floating-point number, for display.
func (f *Frames) Estimate(r *Rule, ms int64) float64 {
	whole, rest := f.scaled(r, ms)
	return float64(whole) + float64(rest)/float64(r.FrameMS)
}

// FirstBelow returns the earliest time at or after ms, in milliseconds, at which the estimate is
// below target if nothing more is counted. The target must be at least 1.
func (f *Frames) FirstBelow(r *Rule, ms, target int64) int64 {
	if f.Whole+f.oldest < target {
		return ms
	}
	switch {
	case r.Strict:
		return f.firstBelowStrict(r, ms, target)
	case r.Algorithm == Fixed:
		if f.Whole < target {
			return ms
		}
		return max(f.Start+r.FrameMS, ms)
	case r.Algorithm == Weighted:
		return f.firstBelowWeighted(r, ms, target)
	}
	// Follow the window from frame to frame. In each frame the next newer slot becomes the oldest
	// and shrinks.
	whole, oldest := f.Whole, f.oldest
	frameStart := f.Start
	for j := len(f.Slots) - 1; ; j-- {
		if whole < target {
			if e := ShrunkBelow(oldest, target-whole, r.FrameMS, ms-frameStart); e < r.FrameMS {
				return frameStart + e
			}
		}
		frameStart += r.FrameMS
		if j == 0 {
			return max(frameStart, ms)
		}
		oldest = f.Slots[j-1].Total(f.Instances)
		whole -= oldest
	}
}

// firstBelowStrict is FirstBelow for a strict limit: each frame leaves the window as a whole.
func (f *Frames) firstBelowStrict(r *Rule, ms, target int64) int64 {
	whole := f.Whole
	for j := len(f.Slots) - 1; j >= 0 && whole >= target; j-- {
		whole -= f.Slots[j].Total(f.Instances)
		ms = max(ms, f.Start+int64(r.Frames+1-j)*r.FrameMS)
	}
	return ms
}

// ShrunkBelow returns the least e >= from with count x (frame - e) < room x frame. This is how many
// milliseconds of a frame must leave the window until less than room of its count is inside. room
// must be at least 1. The result is at most frame.
func ShrunkBelow(count, room, frame, from int64) int64 {
	from = max(from, 0)
	need := room * frame
	if count*(frame-from) < need {
		return from
	}
	return frame - (need+count-1)/count + 1
}

// firstBelowWeighted is FirstBelow for [Weighted]. Within a frame the estimate moves from the
// previous count to the current one. In the next frame it moves from the current count to zero.
func (f *Frames) firstBelowWeighted(r *Rule, ms, target int64) int64 {
	cur, prev, next := f.Whole, f.oldest, f.Start+r.FrameMS
	if elapsed := max(ms-f.Start, 0); ms < next {
		if elapsed*cur+(r.FrameMS-elapsed)*prev < target*r.FrameMS {
			return ms
		}
		if prev > cur {
			if e := r.FrameMS*(prev-target)/(prev-cur) + 1; e < r.FrameMS {
				return f.Start + e
			}
		}
	}
	if e := ShrunkBelow(cur, target, r.FrameMS, ms-next); e < r.FrameMS {
		return next + e
	}
	return max(next+r.FrameMS, ms)
}

// MaxCount is the largest count of one frame. Larger counts are clamped to it.
const MaxCount = math.MaxInt32

// Clamp limits n to the range 0 to [MaxCount].
func Clamp(n int64) uint32 {
	return uint32(min(max(n, 0), MaxCount))
}

// Total returns the count of a frame for a decision: the known count, plus the unflushed count of
// this process times instances. It assumes that each instance has as many. instances is 1 except
// during an outage.
func (s *Slot) Total(instances int64) int64 {
	return min(max(int64(s.Known)+instances*(int64(s.Pending)+int64(s.Unclaimed)), 0), MaxCount)
}

// Count adds n requests. A negative n gives requests back.
func (s *Slot) Count(n int64) {
	s.Unclaimed = int32(min(max(int64(s.Unclaimed)+n, -MaxCount), MaxCount))
}

// SumUnflushed returns the counts that the document may not have: pending and unclaimed.
func SumUnflushed(slots []Slot) (pending, unclaimed int64) {
	for i := range slots {
		pending += int64(slots[i].Pending)
		unclaimed += int64(slots[i].Unclaimed)
	}
	return pending, unclaimed
}

// HasUnclaimed reports whether any frame has unclaimed counts.
func HasUnclaimed(slots []Slot) bool {
	for i := range slots {
		if slots[i].Unclaimed != 0 {
			return true
		}
	}
	return false
}

// sumKnown returns the known counts of all frames.
func sumKnown(slots []Slot) (n int64) {
	for i := range slots {
		n += int64(slots[i].Known)
	}
	return n
}

// Millis returns the time in milliseconds since the epoch, which is the format of counters.
func Millis(now time.Time) int64 { return now.UnixMilli() }

// Slot has the counts of one frame. A decision uses their sum.
type Slot struct {
	Known     uint32 // confirmed in the document
	Pending   int32  // in the pending write, with unknown outcome
	Unclaimed int32  // admitted and in no write yet; negative after a refund
}

// AdmitAt counts one request at ms. f must be independent of any counter.
func (f *Frames) AdmitAt(ms int64) {
	r := f.Rule
	start := r.Newest(ms)
	if n := int(min((start-f.Start)/r.FrameMS, int64(len(f.Slots)))); n > 0 {
		copy(f.Slots[n:], f.Slots)
		clear(f.Slots[:n])
		f.Start = start
		f.Sum(r)
	}
	f.countAdmitted(r, 1)
}
