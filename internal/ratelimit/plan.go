package ratelimit

import "time"

// state is where a counter stands between two exchanges. What it waits for
// grows more urgent from one to the next; package documentation has the table.
type state uint8

const (
	quiet    state = iota // nothing to exchange
	watching              // its document is to be read at a certain time
	lazy                  // has counts to be written some time
	urgent                // is to be written or read as soon as its spacing allows
	busy                  // an exchange is under way
	unused                // no counter
)

// flags are what is to be remembered of a counter and its document.
type flags uint8

const (
	unsynced        flags = 1 << iota // g was never right
	stale                             // g is not right
	readFirst                         // the document is to be read before the pending write is sent again
	contended                         // other processes wrote the document lately
	deniedSinceSync                   // a request was denied since g was last right
	failing                           // the pending write cannot be confirmed
	pooled                            // an overflow counter: shared by keys, never exchanged
	carried                           // what is known comes from another document too
)

func (f flags) has(g flags) bool { return f&g != 0 }

func (f *flags) set(g flags, on bool) {
	if *f &^= g; on {
		*f |= g
	}
}

// Bounds of the time between two exchanges of one counter, in milliseconds.
const (
	minSpacing = 10
	maxSpacing = 100
	// maxWatch is how long a counter near its limit is left unread at most
	// while a request could pass.
	maxWatch = 2000
	// gather is how long the first read of a new key waits for others.
	gatherReads = 3
)

// spacing is the least time between two exchanges of a counter: the time in
// which three requests become possible, within a 300th and a 900th of the window. That is
// 10 ms for 1000 requests a second, 67 ms for 3000 a minute, 100 ms for
// anything slower. One request too many for each process may pass in that time.
func spacing(r *rule) int64 {
	three := 3 * r.window / r.Requests
	return min(max(r.window/900, min(three, r.window/300), minSpacing), maxSpacing)
}

// burst is how many exchanges of one counter may follow one another without
// spacing. A burst of requests, or the start of a frame, is over before a spacing has
// passed: without it a limit of 10 a minute lets 10 through at every process.
const burst = 16

// recentAt is how many exchanges of a counter there were lately: each is forgotten
// after a 300th of the window, but not in less than 10 ms.
func (c *cold) recentAt(r *rule, ms int64) int64 {
	forgotten := ticksAgo(ms, c.began) / max(r.window/300, minSpacing)
	return max(int64(c.recent)-forgotten, 0)
}

// spaced is how long the next exchange of a counter has to wait, in milliseconds.
func (c *cold) spacingLeft(r *rule, ms int64) int64 {
	if c.recentAt(r, ms) < burst {
		return 0
	}
	return max(spacing(r)-ticksAgo(ms, c.synced), 0)
}

// dueShare is which part of the headroom all processes together may hold back,
// if each holds back as much: a fourth. Half of it would do if a process knew
// the others' when it writes, but those that write first do not: in the
// first window of a busy key 9 % too many passed with a half, 3 % with a fourth, for the
// same number of writes.
const dueDivisor = 4

// matters reports whether n requests that the store does not have could matter to
// the other processes, which may each have as many.
func (s *shard) matters(h *hot, n, headroom int64) bool {
	shares := int64(h.holders)
	if shares == 0 {
		shares = int64(s.all.outage.instances.Load())
	}
	return max(n, -n)*dueDivisor*shares >= headroom
}

// urgency is the state of a counter that is not busy.
func (s *shard) urgency(num uint32, slots []slot, headroom int64) state {
	h := s.hotOf(num)
	if h.flags.has(unsynced | stale) {
		return urgent
	}
	if !dirty(slots) {
		if s.chores[num].converts(headroom) {
			return urgent
		}
		if h.flags.has(deniedSinceSync) {
			return watching
		}
		return quiet
	}
	if _, n := unflushed(slots); s.matters(h, n, headroom) {
		return urgent
	}
	return lazy
}

// next is what a counter waits for, and for how many milliseconds at least.
func (s *shard) nextState(num uint32, r *rule, ms int64, q *queue) (state, int64) {
	h, c := s.hotOf(num), s.coldOf(num)
	f := s.frames(num, r)
	headroom := max(r.Requests-f.floor(r, ms), 0)
	idle := ms - int64(s.hotOf(s.firstOf(num)).seen)*1000
	if wait, pending := s.retry(num, &q.options); pending {
		return urgent, wait
	}
	if q.final.Load() && !dirty(f.slots) {
		return quiet, 0
	}
	switch s.urgency(num, f.slots, headroom) {
	case urgent:
		switch {
		case h.flags.has(unsynced):
			return urgent, gatherReads
		case h.flags.has(stale):
			return urgent, 0
		default:
			return urgent, c.spacingLeft(r, ms)
		}
	case lazy:
		return lazy, lazyWait(r, headroom, q.options.Interval.Milliseconds())
	case quiet:
		if !watched(r, headroom, idle) {
			return quiet, 0
		}
	default: // watching
	}
	return watching, f.watch(r, headroom, idle, ticksAgo(ms, c.synced), ms)
}

// firstRetry is the wait after the first exchange that left the outcome of a
// write unknown, and after the third conflict in a row, in milliseconds. It
// doubles with each further one.
const firstRetry = 25

// freeConflicts is how many conflicts in a row are tried again at once: each
// brings the document that was in the way.
const freeConflicts = 2

// retry reports whether a write is pending, and when to go on with it.
func (s *shard) retry(num uint32, o *SyncOptions) (wait int64, pending bool) {
	if s.pendingSeq(num) == 0 {
		return 0, false
	}
	e := s.extrasOf(num)
	tries := max(int(e.fails), int(e.conflicts)-freeConflicts)
	if tries <= 0 {
		return 0, true
	}
	return min(firstRetry<<(tries-1), o.MaxBackoff.Milliseconds()), true
}

// watched reports whether a counter with nothing to write is read all the
// same: one that was asked for within the last window, and has half its limit or less
// left. The next request would otherwise be decided without what others have
// admitted since.
func watched(r *rule, headroom, idle int64) bool {
	return headroom <= r.Requests/2 && idle < min(max(r.window, maxWatch), time.Minute.Milliseconds())
}

// watch is how long a counter with nothing to write is left unread. While no
// request is possible, others can only make the wait longer, so it is soon
// enough to look when it is about to end: resets come with the policies.
// Otherwise it is an eighth of the time in which a request becomes possible,
// or a fourth of that since the key was last asked for here, within bounds.
func (f *frames) watch(r *rule, headroom, idle, age, ms int64) int64 {
	least := spacing(r)
	if headroom == 0 {
		return max(f.firstBelow(r, ms, r.Requests)-ms-least, least-age, 0)
	}
	every := min(max(r.window/r.Requests/8, idle/4), maxWatch)
	return max(every-age, least-age, 0)
}

// maxStretch is how many flush intervals a key far below its limit may wait.
const maxLazyFactor = 10

// stretch is how long counts may wait that do not matter yet, in milliseconds:
// the flush interval for a key from half its limit on, ten times as long for one
// below a quarter, and never longer than a sixth of its window. While they wait
// they are less than a fourth of what is free, divided by the processes.
func lazyWait(r *rule, headroom, interval int64) int64 {
	free := float64(headroom) / float64(r.Requests)
	factor := 1 + (maxLazyFactor-1)*min(max(4*free-2, 0), 1)
	longest := max(r.window/6, spacing(r))
	return min(int64(factor*float64(interval)), longest)
}
