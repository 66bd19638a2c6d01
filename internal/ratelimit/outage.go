package ratelimit

import (
	"sync/atomic"
	"time"
)

// outage is whether counts can be shared, as decisions need it. The syncer sets it.
type outage struct {
	mode      atomic.Uint32
	ended     atomic.Uint32 // tick at which the outage ended, while recovering
	instances atomic.Int32  // live processes, as last seen, this one included
}

// The modes of an outage.
const (
	sharing    = iota // counts are shared
	stalled           // writes fail, or take too long
	recovering        // they work again, but some counters have not been exchanged since
)

// outageRetry is the RetryAfter of a request that is denied only because its count cannot be
// shared.
const outageRetry = 5 * time.Second

// grace returns how old known counts may be, in milliseconds, before a limit is decided by its
// OnOutage: a few exchanges of a busy counter.
func (r *rule) grace() int64 { return 4 * spacing(r) }

// cutOff reports whether the requests of a counter cannot be shared: if its own write fails; while
// all writes fail, once its known counts are old; and after that until its next exchange.
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
