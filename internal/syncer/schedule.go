package syncer

import (
	"time"

	"oauth-server/internal/ratelimit"
)

// exchange is what is done for a counter next.
type exchange uint8

const (
	nothing exchange = iota
	read
	write
)

// Bounds of the time between two exchanges of one counter.
const (
	minSpacing = 10 * time.Millisecond
	maxSpacing = 100 * time.Millisecond
	// maxWatch is how long a key near its limit is left unread at most,
	// however far away its next admission seems: somebody may have reset it.
	maxWatch = 2 * time.Second
)

// spacing is the least time between two exchanges of a counter: the time in
// which three requests become possible, within a 300th and a 900th of the window. That is
// 10 ms for 1000 requests a second, 67 ms for 3000 a minute, 100 ms for
// anything slower. A request too many for each instance may pass in that time.
func spacing(l *ratelimit.Limit) time.Duration {
	three := 3 * l.Window / time.Duration(l.Requests)
	return min(max(l.Window/900, min(three, l.Window/300), minSpacing), maxSpacing)
}

// burst is how many exchanges of one counter may follow one another without
// spacing. A burst of requests, or the start of a frame, is over before a spacing has
// passed: without it a limit of 10 a minute lets 10 through at every instance.
const burst = 16

// spaced is how long the next exchange of a counter has to wait.
func spaced(v *ratelimit.View) time.Duration {
	if v.Recent < burst {
		return 0
	}
	return max(spacing(&v.Limit)-v.Age, 0)
}

// plan says what to do for a counter, and in how long.
func plan(v *ratelimit.View, interval time.Duration) (exchange, time.Duration) {
	wait := spaced(v)
	switch {
	case v.Resolve, !v.Pending && (!v.Synced || v.Stale):
		return read, 0
	case v.Pending:
		return write, 0
	case v.Unflushed > 0 && v.Urgent:
		return write, wait
	case v.Unflushed > 0:
		return write, stretch(v, interval)
	case v.Asked || watched(v):
		return read, watch(v)
	default:
		return nothing, 0
	}
}

// watched reports whether a counter with nothing to write is read all the
// same: one that was asked for within the last window, and has half its limit or less
// left. The next request would otherwise be decided without what others have
// admitted since.
func watched(v *ratelimit.View) bool {
	return v.Headroom <= v.Limit.Requests/2 && v.Idle < min(max(v.Limit.Window, maxWatch), time.Minute)
}

// watch is how long a counter with nothing to write is left unread: an eighth
// of the time in which a request becomes possible, or a fourth of that since
// the key was last asked for here, within bounds. While no request is possible, others can only
// make the wait longer, so it is soon enough to look when it is about to end.
func watch(v *ratelimit.View) time.Duration {
	least := spacing(&v.Limit)
	every := max(v.Limit.Window/time.Duration(v.Limit.Requests)/8, v.Idle/4)
	return min(max(every-v.Age, least-v.Age, v.FreeIn-least, 0), maxWatch)
}

// planFinal says what to do for a counter when the instance stops: write, and
// read only where that tells whether a write was applied.
func planFinal(v *ratelimit.View) exchange {
	switch {
	case v.Unflushed == 0:
		return nothing
	case v.Resolve:
		return read
	default:
		return write
	}
}

// maxStretch is how many flush intervals a key far below its limit may wait.
const maxStretch = 10

// stretch is how long counts may wait that do not matter yet: the flush
// interval for a key from half its limit on, ten times as long for one below
// a quarter, and never longer than a sixth of its window.
func stretch(v *ratelimit.View, interval time.Duration) time.Duration {
	free := float64(v.Headroom) / float64(v.Limit.Requests)
	factor := 1 + (maxStretch-1)*min(max(4*free-2, 0), 1)
	longest := max(v.Limit.Window/6, spacing(&v.Limit))
	return min(time.Duration(factor*float64(interval)), longest)
}
