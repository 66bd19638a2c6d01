package ratelimit

import (
	"math/rand/v2"
	"time"
)

// victims is how many keys are looked at to find one that makes room.
const evictSamples = 16

// evict drops one key of the shard, and leaves its room to the next: the first
// idle one or the least used of those it looks at. False if all of them have to stay.
func (s *shard) evict(ms int64) bool {
	var victim uint32
	least, looked := 2.0, 0
	n := int(s.numbers)
	if n < 2 {
		return false
	}
	begin := rand.IntN(n - 1) //nolint:gosec // which key makes room is no secret
	for i := 0; i < n-1 && looked < evictSamples; i++ {
		num := uint32((begin+i)%(n-1) + 1) //nolint:gosec // a number
		if !s.isKey(num) {
			continue
		}
		looked++
		if s.idle(num, ms) {
			s.expire(num)
			return true
		}
		if u := s.usage(num, ms); u < least && s.flushed(num) && !s.atLimit(num, ms) {
			victim, least = num, u
		}
	}
	if victim == 0 {
		return false
	}
	s.remove(victim)
	s.all.evicted.Add(1)
	return true
}

// isKey reports whether the number is that of the first counter of a key.
func (s *shard) isKey(num uint32) bool {
	h := s.hotOf(num)
	return h.state != unused && h.rule == 0 && !h.flags.has(pooled)
}

// expire drops an idle key; what it had not written is too old to matter.
func (s *shard) expire(first uint32) {
	nums, n := s.chainOf(first)
	for _, num := range nums[:n] {
		if _, since := unflushed(s.slotsOf(num)); since > 0 {
			s.all.expired.Add(since)
		}
	}
	s.remove(first)
}

// slotsOf returns the frames of a counter by its own rule.
func (s *shard) slotsOf(num uint32) []slot { return s.slots(s.hotOf(num), s.ruleOf(num)) }

func (s *shard) ruleOf(num uint32) *rule {
	h := s.hotOf(num)
	return &limitsOf(h.limits).rules[h.rule]
}

// idle reports whether a key was not asked for during two windows, which makes
// all its counts too old to matter, and no write of it is under way.
func (s *shard) idle(first uint32, ms int64) bool {
	since := ms - (int64(s.hotOf(first).seen)+1)*1000
	for num := first; num != 0; num = s.hotOf(num).next {
		if since < 2*s.ruleOf(num).window || s.pendingSeq(num) != 0 {
			return false
		}
	}
	return true
}

// flushed reports whether the store is known to have everything that was counted here.
func (s *shard) flushed(first uint32) bool {
	for num := first; num != 0; num = s.hotOf(num).next {
		if s.pendingSeq(num) != 0 || dirty(s.slotsOf(num)) {
			return false
		}
	}
	return true
}

// usage is the highest share of a limit that is used.
func (s *shard) usage(first uint32, ms int64) (u float64) {
	for num := first; num != 0; num = s.hotOf(num).next {
		r := s.ruleOf(num)
		s.advance(num, r, ms)
		f := s.frames(num, r)
		u = max(u, f.estimate(r, ms)/float64(r.Requests))
	}
	return u
}

// Sweep drops the keys that were idle for two windows, and returns how many. It
// holds one shard at a time, for some microseconds.
func (c *Counters) Sweep(now time.Time) (dropped int) {
	return c.dropWhere(func(s *shard, num uint32) bool {
		if s.idle(num, millis(now)) {
			s.expire(num)
			return true
		}
		return false
	})
}

// dropWhere calls drop for every key, and counts those of which it reports that
// it has dropped them.
func (c *Counters) dropWhere(drop func(s *shard, num uint32) bool) (n int) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		for num := uint32(1); num < s.numbers; num++ {
			if s.isKey(num) && drop(s, num) {
				c.all.keys.Add(-1)
				n++
			}
		}
		s.mu.Unlock()
	}
	return n
}

// Reset forgets the key: its next request is counted from zero. It reports
// whether the key was in memory.
func (c *Counters) Reset(k Key) bool {
	s, h := c.lookup(k.bounded())
	s.mu.Lock()
	defer s.mu.Unlock()
	num := s.find(h)
	if num != 0 {
		s.remove(num)
		c.all.keys.Add(-1)
	}
	return num != 0
}

// ResetClient forgets the client and all its users, and returns how many keys
// that were.
func (c *Counters) ResetClient(clientID string) int {
	return c.dropWhere(func(s *shard, num uint32) bool {
		if s.isOf(num, clientID) {
			s.remove(num)
			return true
		}
		return false
	})
}
