package simulate

import "time"

// blocked has the keys, by their hash, for which every request is refused. A key that sends nothing
// for a while is dropped, so that the map does not grow forever.
type blocked map[uint64]stretch

// stretch is a period of a key without any admitted request.
type stretch struct {
	client       *client
	since, until int64 // milliseconds since 1970; at until a request would have passed
}

// blockedPause ends a stretch: the key sent no request for this long after one would have passed.
const blockedPause = time.Hour

func (b blocked) refuse(c *client, key uint64, now time.Time, retryAfter time.Duration) {
	ms := now.UnixMilli()
	s, is := b[key]
	if is && ms > s.until+blockedPause.Milliseconds() {
		b.end(key, s, s.until)
		is = false
	}
	if !is {
		s = stretch{client: c, since: ms}
		c.trouble.blocked++
	}
	s.until = ms + retryAfter.Milliseconds()
	b[key] = s
}

// pass ends the stretch of a key, if it is blocked.
func (b blocked) pass(key uint64, now time.Time) {
	if s, is := b[key]; is {
		b.end(key, s, min(s.until, now.UnixMilli()))
	}
}

func (b blocked) end(key uint64, s stretch, at int64) {
	x := s.client.trouble
	x.longestBlocked = max(x.longestBlocked, time.Duration(at-s.since)*time.Millisecond)
	x.blocked--
	delete(b, key)
}

func (b blocked) sweep(now time.Time) {
	before := now.Add(-blockedPause).UnixMilli()
	for key, s := range b {
		if s.until < before {
			b.end(key, s, s.until)
		}
	}
}

// finish ends all stretches.
func (b blocked) finish() {
	for key, s := range b {
		b.end(key, s, s.until)
	}
}
