package ratelimit

import (
	"sync/atomic"
	"time"
)

// outage tells decisions whether counts can be shared. The syncer sets it.
type outage struct {
	mode      atomic.Uint32
	ended     atomic.Uint32 // tick at which the outage ended, while recovering
	instances atomic.Int32  // live processes at the last count, this one included
}

// The modes of an outage.
const (
	sharing    = iota // counts are shared
	stalled           // writes fail or take too long
	recovering        // writes work again, but some counters had no exchange since
)

// outageRetry is the RetryAfter of a request that is denied only because its count cannot be
// shared.
const outageRetry = 5 * time.Second

// grace returns the age of known counts, in milliseconds, from which a limit is decided by its
// OnOutage. It is the time of a few exchanges of a busy counter.
func (r *rule) grace() int64 { return 4 * spacing(r) }

// cutOff reports whether the requests of a counter cannot be shared. This is the case if its own
// write fails. While all writes fail, it is the case once its known counts are old. After that it
// is the case until the next exchange of the counter.
func (s *shard) cutOff(num uint32, r *rule, ms int64) bool {
	h, o := s.hotOf(num), &s.all.outage
	if h.flags.has(failing) {
		return true
	}
	switch mode := o.mode.Load(); {
	case mode == sharing:
		return false
	case h.flags.has(unsynced | pooled):
		return mode == stalled
	case mode == recovering:
		return ticksAgo(ms, s.coldOf(num).synced) > ticksAgo(ms, o.ended.Load())
	default:
		return ticksAgo(ms, s.coldOf(num).synced) > r.grace()
	}
}
