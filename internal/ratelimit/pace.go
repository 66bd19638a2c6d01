package ratelimit

import "time"

// Bounds of the time between two exchanges of one counter, in milliseconds.
const (
	MinSpacing = 10
	MaxSpacing = 100
	// MaxWatch is the longest time between two reads of a counter near its limit, while a request
	// could pass.
	MaxWatch = 2000
)

// Spacing returns the minimum time between two exchanges of a counter, in milliseconds. It is the
// time in which the limit admits three requests, but at least a 900th and at most a 300th of the
// window. That is 10 ms for 1000 requests a second, 67 ms for 3000 a minute, and 100 ms for
// anything slower. In that time each process may admit one request too many.
func (r *Rule) Spacing() int64 {
	three := 3 * r.WindowMS / r.Requests
	return min(max(r.WindowMS/900, min(three, r.WindowMS/300), MinSpacing), MaxSpacing)
}

// Watched reports whether a counter must be read although it has nothing to write. This is the case
// if it had a request within the last window and at most half of its limit is left. Otherwise the
// next request would be decided without the recent counts of other processes.
func (r *Rule) Watched(headroom, idle int64) bool {
	return headroom <= r.Requests/2 && idle < min(max(r.WindowMS, MaxWatch), time.Minute.Milliseconds())
}

// Watch returns in how many milliseconds to read a counter with nothing to write. If no request is
// possible, other processes can only prolong that, so the document is read when the wait is about
// to end. (Resets by operators arrive with the policies.) Otherwise the time is an eighth of the
// time in which the limit admits one request, or a fourth of the time since the last request here,
// within bounds.
func (f *Frames) Watch(r *Rule, headroom, idle, age, ms int64) int64 {
	least := r.Spacing()
	if headroom == 0 {
		return max(f.FirstBelow(r, ms, r.Requests)-ms-least, least-age, 0)
	}
	every := min(max(r.WindowMS/r.Requests/8, idle/4), MaxWatch)
	return max(every-age, least-age, 0)
}

// maxLazyFactor is how many flush intervals the counts of a key far below its limit may wait.
const maxLazyFactor = 10

// LazyWait returns how many milliseconds counts that are not due may wait. That is the flush
// interval for a key that has used half of its limit, and ten times as long for a key that has used
// less than a quarter. It is at most half the window less a second, or a sixth of a window shorter
// than three seconds. Counts that become due wait no longer.
func (r *Rule) LazyWait(headroom, interval int64) int64 {
	free := float64(headroom) / float64(r.Requests)
	factor := 1 + (maxLazyFactor-1)*min(max(4*free-2, 0), 1)
	longest := max(r.WindowMS/6, r.WindowMS/2-1000, r.Spacing())
	return min(int64(factor*float64(interval)), longest)
}

// Grace returns the age of known counts, in milliseconds, from which a limit is decided by its
// OnOutage. It is the time of a few exchanges of a busy counter.
func (r *Rule) Grace() int64 { return 4 * r.Spacing() }
