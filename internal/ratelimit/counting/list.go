package counting

import (
	"slices"
	"time"

	"oauth-server/internal/ratelimit"
)

// Usage returns the counters of one key, in the order of its limits. It returns nil if the key is
// not in memory.
func (c *Counters) Usage(now time.Time, k ratelimit.Key) []ratelimit.Usage {
	s, h := c.lookup(k.Bounded())
	s.mu.Lock()
	defer s.mu.Unlock()
	if num := s.Find(h); num != 0 {
		return s.usages(nil, num, ratelimit.Millis(now))
	}
	return nil
}

// ClientUsage returns at most limit counters of a client and its users, the most used first. It
// examines every key in memory.
func (c *Counters) ClientUsage(now time.Time, clientID string, limit int) []ratelimit.Usage {
	return c.most(now, limit, func(s *shard, num uint32) bool { return s.IsOf(num, clientID) })
}

// Top returns at most limit counters of all clients and users, the most used first. It examines
// every key in memory.
func (c *Counters) Top(now time.Time, limit int) []ratelimit.Usage {
	return c.most(now, limit, func(s *shard, num uint32) bool { return !s.IsInternal(num) })
}

// gatherExtra is how many counters beyond the limit are collected before the list is sorted and
// cut.
const gatherExtra = 100

// most returns at most limit counters of the wanted keys, the most used first. It locks one shard
// at a time. It skips keys that are used less than the counters found so far.
func (c *Counters) most(now time.Time, limit int, want func(s *shard, num uint32) bool) (out []ratelimit.Usage) {
	if limit < 1 {
		return nil
	}
	ms, least := ratelimit.Millis(now), 0.0
	cut := func() {
		slices.SortFunc(out, ratelimit.ByRatio)
		if len(out) > limit {
			out, least = out[:limit], out[limit-1].Ratio()
		}
	}
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		for num := uint32(1); num < s.Numbers; num++ {
			if s.IsKey(num) && want(s, num) && s.usage(num, ms) >= least {
				out = s.usages(out, num, ms)
			}
		}
		if len(out) > limit+gatherExtra {
			cut()
		}
		s.mu.Unlock()
	}
	cut()
	return out
}

// usages appends the counters of a key that have a count.
func (s *shard) usages(out []ratelimit.Usage, first uint32, ms int64) []ratelimit.Usage {
	k, seen := s.Key(first), time.Unix(int64(s.HotOf(first).Seen), 0)
	for num := first; num != 0; num = s.HotOf(num).Next {
		r := s.RuleOf(num)
		s.advance(num, r, ms)
		f := s.frames(num, r)
		u := f.Usage(r, ms)
		u.Unflushed = s.admitted(num, f.Slots)
		if u.Known != 0 || u.Unflushed != 0 {
			u.Key, u.LastSeen = k, seen
			out = append(out, u)
		}
	}
	return out
}
