package ratelimit

import "time"

// victims is how many keys are looked at to find one that makes room.
const victims = 16

// evict drops one key of the shard, and leaves its room to the next: the first
// idle one or the least used of those it looks at. False if all of them have to stay.
func (s *shard) evict(ms int64) bool {
	var victim *entry
	var hash uint64
	least, looked := 2.0, 0
	for h, e := range s.entries { // begins anywhere
		for ; e != nil; e = e.next {
			looked++
			if e.idle(ms) {
				s.expire(h, e)
				return true
			}
			if u := e.usage(ms); u < least && e.flushed() && !e.atLimit(ms) {
				victim, hash, least = e, h, u
			}
		}
		if looked >= victims {
			break
		}
	}
	if victim == nil {
		return false
	}
	s.remove(hash, victim)
	s.all.evicted.Add(1)
	return true
}

// expire drops an idle entry; what it had not written is too old to matter.
func (s *shard) expire(hash uint64, e *entry) {
	for i := range e.limits.rules {
		s.all.expired.Add(e.at(i).inFlight())
	}
	s.remove(hash, e)
}

// idle reports whether the key was not seen for two windows, which makes all
// its counts too old to matter, and no write of it is under way.
func (e *entry) idle(ms int64) bool {
	for i := range e.limits.rules {
		if ms-e.seen < 2*e.limits.rules[i].window || e.at(i).pending() != nil {
			return false
		}
	}
	return true
}

// flushed reports whether the database knows everything that was counted here.
func (e *entry) flushed() bool {
	for i := range e.limits.rules {
		if c := e.at(i); c.pending() != nil || c.inFlight() > 0 {
			return false
		}
	}
	return true
}

// atLimit reports whether one more request would be denied.
func (e *entry) atLimit(ms int64) bool {
	for i := range e.limits.rules {
		r, c := &e.limits.rules[i], e.at(i)
		if c.floor(r, c.observe(r, ms)) >= r.Requests {
			return true
		}
	}
	return false
}

// usage is the highest share of a limit that is used.
func (e *entry) usage(ms int64) (u float64) {
	for i := range e.limits.rules {
		r, c := &e.limits.rules[i], e.at(i)
		u = max(u, c.estimate(r, c.observe(r, ms))/float64(r.Requests))
	}
	return u
}

// Sweep drops the keys that were idle for two windows, and returns how many. It
// holds one shard at a time, for some microseconds.
func (c *Counters) Sweep(now time.Time) (dropped int) {
	ms := c.millis(now)
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		for hash, e := range s.entries {
			for e != nil {
				next := e.next
				if e.idle(ms) {
					s.expire(hash, e)
					s.all.keys.Add(-1)
					dropped++
				}
				e = next
			}
		}
		s.mu.Unlock()
	}
	return dropped
}
