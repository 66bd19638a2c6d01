package ratelimit

import "time"

// state is what a counter waits for between two exchanges; the package documentation has a table.
// The states up to urgent are ordered by urgency.
type state uint8

const (
	quiet    state = iota // nothing to exchange
	watching              // its document is to be read at a certain time
	lazy                  // has counts to be written within a time
	urgent                // is to be written or read as soon as its spacing allows
	busy                  // an exchange is under way
	unused                // no counter
)

// flags describe a counter and what is known of its document.
type flags uint8

const (
	unsynced        flags = 1 << iota // no exchange has read the document yet
	stale                             // known is not what the document has
	readFirst                         // the document must be read before the pending write is sent again
	contended                         // other processes wrote the document recently
	deniedSinceSync                   // a request was denied since the last exchange
	failing                           // the outcome of the pending write stays unknown
	pooled                            // an overflow counter: shared by several keys, never exchanged
	carried                           // counts more than its document has: see carry
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
	// maxWatch is the longest time between two reads of a counter near its limit while a request
	// could pass.
	maxWatch = 2000
	// gatherReads is how long the first read of a new key waits for those of others.
	gatherReads = 3
)

// spacing returns the least time between two exchanges of a counter, in milliseconds: the time in
// which three requests become possible, between a 900th and a 300th of the window. That is 10 ms
// for 1000 requests a second, 67 ms for 3000 a minute, and 100 ms for anything slower. In that time
// each process may admit one request too many.
func spacing(r *rule) int64 {
	three := 3 * r.window / r.Requests
	return min(max(r.window/900, min(three, r.window/300), minSpacing), maxSpacing)
}

// burst is how many exchanges of one counter may follow one another without spacing. A burst of
// requests, or the start of a frame, is over before a spacing has passed: without it a limit of 10
// a minute would admit 10 at every process.
const burst = 16

// recentAt returns the number of recent exchanges of a counter at ms: it falls by one in a 300th of
// the window, but not in less than 10 ms.
func (c *cold) recentAt(r *rule, ms int64) int64 {
	forgotten := ticksAgo(ms, c.began) / max(r.window/300, minSpacing)
	return max(int64(c.recent)-forgotten, 0)
}

// spacingLeft returns how long the next exchange of a counter has to wait, in milliseconds.
func (c *cold) spacingLeft(r *rule, ms int64) int64 {
	if c.recentAt(r, ms) < burst {
		return 0
	}
	return max(spacing(r)-ticksAgo(ms, c.synced), 0)
}

// dueDivisor is the due rule: counts are written when they reach this part of the headroom, a
// fourth, divided by the processes that may hold back as much. A half would do if each process had
// the counts of the others when it writes, but those that write first have not: in the first window
// of a busy key 9 % too many passed with a half and 3 % with a fourth, for the same number of
// writes.
const dueDivisor = 4

// matters reports whether n unclaimed requests are due: whether they could matter to the other
// processes, each of which may hold back as many.
func (s *shard) matters(h *hot, n, headroom int64) bool {
	return max(n, -n)*dueDivisor*s.holders(h) >= headroom
}

// holders returns how many processes may hold counts of a counter back.
func (s *shard) holders(h *hot) int64 {
	if h.holders == 0 {
		return int64(s.all.outage.instances.Load())
	}
	return int64(h.holders)
}

// urgency returns the state that a counter which is not busy should have: quiet, watching, lazy or
// urgent.
func (s *shard) urgency(num uint32, r *rule, headroom int64) state {
	if s.leased(num, r) {
		return s.leaseUrgency(num, r)
	}
	h := s.hotOf(num)
	slots := s.slots(h, r)
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

// nextState returns the state of a counter that is not busy, and how many milliseconds it waits in
// it at least.
func (s *shard) nextState(num uint32, r *rule, ms int64, q *queue) (state, int64) {
	if s.leased(num, r) {
		return s.nextLease(num, r, ms, q)
	}
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
	switch s.urgency(num, r, headroom) {
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

// firstRetry is the back-off, in milliseconds, after the first exchange that left the outcome of a
// write unknown, and after the third conflict in a row. It doubles with each further one.
const firstRetry = 25

// freeConflicts is how many conflicts in a row are retried at once: each of them also reads the
// document that caused it.
const freeConflicts = 2

// retry reports whether a write is pending, and in how many milliseconds to retry it.
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

// watched reports whether a counter with nothing to write must still be read: if it had a request
// within the last window and has at most half of its limit left. The next request would otherwise
// be decided without what others have admitted since.
func watched(r *rule, headroom, idle int64) bool {
	return headroom <= r.Requests/2 && idle < min(max(r.window, maxWatch), time.Minute.Milliseconds())
}

// watch returns how many milliseconds a counter with nothing to write is left unread. While no
// request is possible, others can only lengthen the wait, so the document is read when the wait is
// about to end (resets by operators arrive with the policies). Otherwise it is an eighth of the
// time in which one request becomes possible, or a fourth of the time since the last request here,
// within bounds.
func (f *frames) watch(r *rule, headroom, idle, age, ms int64) int64 {
	least := spacing(r)
	if headroom == 0 {
		return max(f.firstBelow(r, ms, r.Requests)-ms-least, least-age, 0)
	}
	every := min(max(r.window/r.Requests/8, idle/4), maxWatch)
	return max(every-age, least-age, 0)
}

// maxLazyFactor is how many flush intervals the counts of a key far below its limit may wait.
const maxLazyFactor = 10

// lazyWait returns how many milliseconds counts that are not due may wait: the flush interval for a
// key that has used half of its limit, ten times as long for one that has used less than a quarter,
// and never longer than a sixth of the window. Should they become due meanwhile, they wait no
// longer.
func lazyWait(r *rule, headroom, interval int64) int64 {
	free := float64(headroom) / float64(r.Requests)
	factor := 1 + (maxLazyFactor-1)*min(max(4*free-2, 0), 1)
	longest := max(r.window/6, spacing(r))
	return min(int64(factor*float64(interval)), longest)
}
