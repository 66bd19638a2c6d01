package ratelimit

import (
	"cmp"
	"slices"
	"time"
)

// Usage is the state of one counter, for display.
type Usage struct {
	Key       Key
	Limit     Limit
	Known     int64         // confirmed by the store (g)
	Unflushed int64         // admitted here and not confirmed by the store: pending and unclaimed (i)
	Estimate  float64       // requests inside the window
	Remaining int64         // requests that would pass now
	FreeIn    time.Duration // until one request would pass; 0 if one would now
	LastSeen  time.Time     // last request in this process, in whole seconds, or zero
}

// Ratio returns the used share of the limit. It exceeds 1 after a limit was lowered.
func (u Usage) Ratio() float64 { return u.Estimate / float64(u.Limit.Requests) }

// Usage returns the counters of one key, in the order of its limits. It returns nil if the key is
// not in memory.
func (c *Counters) Usage(now time.Time, k Key) []Usage {
	s, h := c.lookup(k.bounded())
	s.mu.Lock()
	defer s.mu.Unlock()
	if num := s.find(h); num != 0 {
		return s.usages(nil, num, millis(now))
	}
	return nil
}

// ClientUsage returns at most limit counters of a client and its users, the most used first. It
// examines every key in memory.
func (c *Counters) ClientUsage(now time.Time, clientID string, limit int) []Usage {
	return c.most(now, limit, func(s *shard, num uint32) bool { return s.isOf(num, clientID) })
}

// Top returns at most limit counters of all clients and users, the most used first. It examines
// every key in memory.
func (c *Counters) Top(now time.Time, limit int) []Usage {
	return c.most(now, limit, func(s *shard, num uint32) bool { return !s.isInternal(num) })
}

// gatherExtra is how many counters beyond the limit are collected before the list is sorted and
// cut.
const gatherExtra = 100

// most returns at most limit counters of the wanted keys, the most used first. It locks one shard
// at a time. It skips keys that are used less than the counters found so far.
func (c *Counters) most(now time.Time, limit int, want func(s *shard, num uint32) bool) (out []Usage) {
	if limit < 1 {
		return nil
	}
	ms, least := millis(now), 0.0
	cut := func() {
		slices.SortFunc(out, byRatio)
		if len(out) > limit {
			out, least = out[:limit], out[limit-1].Ratio()
		}
	}
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		for num := uint32(1); num < s.numbers; num++ {
			if s.isKey(num) && want(s, num) && s.usage(num, ms) >= least {
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

// byRatio orders by Ratio, the highest first, then by names.
func byRatio(a, b Usage) int {
	return cmp.Or(cmp.Compare(b.Ratio(), a.Ratio()), cmp.Compare(a.Key.ClientID, b.Key.ClientID),
		cmp.Compare(a.Key.Username, b.Key.Username), cmp.Compare(a.Limit.Name, b.Limit.Name))
}

// usages appends the counters of a key that have a count.
func (s *shard) usages(out []Usage, first uint32, ms int64) []Usage {
	k, seen := s.key(first), time.Unix(int64(s.hotOf(first).seen), 0)
	for num := first; num != 0; num = s.hotOf(num).next {
		r := s.ruleOf(num)
		s.advance(num, r, ms)
		f := s.frames(num, r)
		u := f.usage(r, ms)
		u.Unflushed = s.admitted(num, f.slots)
		if u.Known != 0 || u.Unflushed != 0 {
			u.Key, u.LastSeen = k, seen
			out = append(out, u)
		}
	}
	return out
}

// usage returns the state of a counter for display.
func (f *frames) usage(r *rule, ms int64) Usage {
	pending, unclaimed := unflushed(f.slots)
	u := Usage{
		Limit: r.Limit, Known: sumKnown(f.slots), Unflushed: pending + unclaimed,
		Estimate: f.estimate(r, ms), Remaining: max(r.Requests-f.floor(r, ms), 0),
	}
	if u.Remaining == 0 {
		u.FreeIn = time.Duration(f.firstBelow(r, ms, r.Requests)-ms) * time.Millisecond
	}
	return u
}

// StoredUsage returns the state of a counter from its document alone, for display. Use it for keys
// that only other processes have in memory. It returns false if ls is nil or has no limit with the
// name in id, or if all counts in the document are too old to matter.
func StoredUsage(now time.Time, id CounterID, ls *Limits, d *Document) (Usage, bool) {
	if ls == nil {
		return Usage{}, false
	}
	ms := millis(now)
	for i := range ls.rules {
		r := &ls.rules[i]
		if r.doc != id.Limit {
			continue
		}
		f := frames{slots: make([]slot, r.frames()), start: r.newest(ms), instances: 1}
		var m contents
		m.read(r, f.start, ms, d)
		for j := range f.slots {
			f.slots[j].known = clamp(m.counts[j])
		}
		if r.Strict {
			f.sumStrict()
		} else {
			f.sum()
		}
		u := f.usage(r, ms)
		u.Key = Key{ClientID: id.ClientID, Username: id.Username}
		return u, u.Known > 0
	}
	return Usage{}, false
}
