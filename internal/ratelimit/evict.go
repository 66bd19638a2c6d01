package ratelimit

import (
	"math/rand/v2"
	"time"
)

// evictSamples is how many keys evict examines.
const evictSamples = 16

// evict removes one key of the shard. The room stays reserved for the caller. It returns false if
// no key can be removed.
func (s *shard) evict(ms int64) bool {
	victim, idle := s.victim(ms)
	switch {
	case victim == 0:
		return false
	case idle:
		s.expire(victim)
	default:
		s.remove(victim)
		s.all.evicted.Add(1)
	}
	return true
}

// victim returns the key to evict. It examines up to evictSamples keys from a random position. It
// returns the first idle key, or else the least used one. It returns 0 if all keys must stay
// because they are at their limit or have unflushed counts.
func (s *shard) victim(ms int64) (victim uint32, idle bool) {
	least, looked := 2.0, 0
	n := int(s.numbers)
	if n < 2 {
		return 0, false
	}
	begin := rand.IntN(n - 1) //nolint:gosec // the choice of the victim needs no secrecy
	for i := 0; i < n-1 && looked < evictSamples; i++ {
		num := uint32((begin+i)%(n-1) + 1) //nolint:gosec // a number
		if !s.isKey(num) {
			continue
		}
		looked++
		if s.idle(num, ms) {
			return num, true
		}
		if u := s.usage(num, ms); u < least && s.flushed(num) && !s.atLimit(num, ms) {
			victim, least = num, u
		}
	}
	return victim, false
}

// isKey reports whether num is the first counter of a key.
func (s *shard) isKey(num uint32) bool {
	h := s.hotOf(num)
	return h.state != unused && h.rule == 0 && !h.flags.has(pooled)
}

// expire removes an idle key. Its unclaimed counts are too old to matter.
func (s *shard) expire(first uint32) {
	nums, n := s.chainOf(first)
	for _, num := range nums[:n] {
		if _, unclaimed := unflushed(s.slotsOf(num)); unclaimed > 0 {
			s.all.expired.Add(unclaimed)
		}
	}
	s.remove(first)
}

// slotsOf returns the slots of a counter, the newest first.
func (s *shard) slotsOf(num uint32) []slot { return s.slots(s.hotOf(num), s.ruleOf(num)) }

// ruleOf returns the rule of a counter.
func (s *shard) ruleOf(num uint32) *rule {
	h := s.hotOf(num)
	return &limitsOf(h.limits).rules[h.rule]
}

// idle reports whether a key had no request for two windows and has no pending write. All its
// counts are then too old to matter.
func (s *shard) idle(first uint32, ms int64) bool {
	since := ms - (int64(s.hotOf(first).seen)+1)*1000
	for num := first; num != 0; num = s.hotOf(num).next {
		if since < 2*s.ruleOf(num).window || s.pendingSeq(num) != 0 {
			return false
		}
	}
	return true
}

// flushed reports whether the store has confirmed all counts of a key.
func (s *shard) flushed(first uint32) bool {
	if s.waitingFor(first) > 0 {
		return false
	}
	for num := first; num != 0; num = s.hotOf(num).next {
		if s.pendingSeq(num) != 0 || dirty(s.slotsOf(num)) || s.holds(num) {
			return false
		}
	}
	return true
}

// atLimit reports whether a limit has no room for one more request of a key.
func (s *shard) atLimit(first uint32, ms int64) bool {
	for num := first; num != 0; num = s.hotOf(num).next {
		var f frames
		var d Decision
		r := s.ruleOf(num)
		if s.view(&f, num, r, ms, &d); f.full(r, 1) {
			return true
		}
	}
	return false
}

// usage returns the highest used share among the limits of a key.
func (s *shard) usage(first uint32, ms int64) (u float64) {
	for num := first; num != 0; num = s.hotOf(num).next {
		r := s.ruleOf(num)
		s.advance(num, r, ms)
		f := s.frames(num, r)
		u = max(u, f.estimate(r, ms)/float64(r.Requests))
	}
	return u
}

// Sweep removes the keys without a request for two windows and returns how many. It locks one shard
// at a time, for microseconds. Then it drops compiled limits that are no longer in use.
func (c *Counters) Sweep(now time.Time) (dropped int) {
	defer sweepLimits()
	return c.dropWhere(func(s *shard, num uint32) bool {
		if s.idle(num, millis(now)) {
			s.expire(num)
			return true
		}
		return false
	})
}

// dropWhere calls drop for every key. It returns how many calls reported that they removed the key.
func (c *Counters) dropWhere(drop func(s *shard, num uint32) bool) (n int) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		for num := uint32(1); num < s.numbers; num++ {
			if s.isKey(num) && drop(s, num) {
				s.release()
				n++
			}
		}
		s.mu.Unlock()
	}
	return n
}

// Reset removes the key from memory, including unflushed counts, so its next request is counted
// from zero. It reports whether the key was in memory.
func (c *Counters) Reset(k Key) bool {
	s, h := c.lookup(k.bounded())
	s.mu.Lock()
	defer s.mu.Unlock()
	num := s.find(h)
	if num != 0 {
		s.remove(num)
		s.release()
	}
	return num != 0
}

// ResetClient removes the client and all its users from memory, as [Counters.Reset] does. It
// returns the number of removed keys.
func (c *Counters) ResetClient(clientID string) int {
	return c.dropWhere(func(s *shard, num uint32) bool {
		if s.isOf(num, clientID) {
			s.remove(num)
			return true
		}
		return false
	})
}
