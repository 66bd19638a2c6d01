package ratelimit

import (
	"cmp"
	"slices"
	"time"
)

// Usage is one counter, for people to look at.
type Usage struct {
	Key       Key
	Limit     Limit
	Known     int64         // g: known to be in the store
	Unflushed int64         // admitted here, not known to be there: in a pending write (p) and since (i)
	Estimate  float64       // requests inside the window
	Remaining int64         // requests that would pass now
	FreeIn    time.Duration // until one request passes; 0 if one would now
	LastSeen  time.Time     // when this process was last asked, whole seconds
}

// Ratio is the share of the limit that is used; above 1 where a limit was lowered.
func (u Usage) Ratio() float64 { return u.Estimate / float64(u.Limit.Requests) }

// Usage returns the counters of one key, in the order of its limits; none if
// it is not in memory.
func (c *Counters) Usage(now time.Time, k Key) []Usage {
	s, h := c.lookup(k.bounded())
	s.mu.Lock()
	defer s.mu.Unlock()
	if num := s.find(h); num != 0 {
		return s.usages(nil, num, millis(now))
	}
	return nil
}

// ClientUsage returns the counters of a client and its users, the most used
// first, at most limit of them. It looks at every key in memory.
func (c *Counters) ClientUsage(now time.Time, clientID string, limit int) []Usage {
	return c.most(now, limit, func(s *shard, num uint32) bool { return s.isOf(num, clientID) })
}

// Top returns the most used counters of all, at most limit of them. It looks at
// every key in memory.
func (c *Counters) Top(now time.Time, limit int) []Usage {
	return c.most(now, limit, func(*shard, uint32) bool { return true })
}

// kept is how many more counters than asked for are gathered before they are
// sorted and cut.
const gatherExtra = 100

// most goes through the shards, one at a time under its lock, and passes over
// keys that are less used than what it has found already.
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

func byRatio(a, b Usage) int {
	return cmp.Or(cmp.Compare(b.Ratio(), a.Ratio()), cmp.Compare(a.Key.ClientID, b.Key.ClientID),
		cmp.Compare(a.Key.Username, b.Key.Username), cmp.Compare(a.Limit.Name, b.Limit.Name))
}

// usages adds the counters of a key that count anything.
func (s *shard) usages(out []Usage, first uint32, ms int64) []Usage {
	k, seen := s.key(first), time.Unix(int64(s.hotOf(first).seen), 0)
	for num := first; num != 0; num = s.hotOf(num).next {
		r := s.ruleOf(num)
		s.advance(num, r, ms)
		f := s.frames(num, r)
		if u := f.usage(r, ms); u.Known != 0 || u.Unflushed != 0 {
			u.Key, u.LastSeen = k, seen
			out = append(out, u)
		}
	}
	return out
}

// usage shows frames as a counter.
func (f *frames) usage(r *rule, ms int64) Usage {
	pending, since := unflushed(f.slots)
	u := Usage{
		Limit: r.Limit, Known: sumKnown(f.slots), Unflushed: pending + since,
		Estimate: f.estimate(r, ms), Remaining: max(r.Requests-f.floor(r, ms), 0),
	}
	if u.Remaining == 0 {
		u.FreeIn = time.Duration(f.firstBelow(r, ms, r.Requests)-ms) * time.Millisecond
	}
	return u
}

// StoredUsage is a counter as its document alone shows it, for people to look
// at: of a key that other processes serve and this one does not hold. False if
// ls has no limit of that name, or nothing of the document matters any more.
func StoredUsage(now time.Time, id CounterID, ls *Limits, d *Document) (Usage, bool) {
	ms := millis(now)
	for i := range ls.rules {
		r := &ls.rules[i]
		if r.doc != id.Limit {
			continue
		}
		f := frames{slots: make([]slot, r.frames()), start: r.align(ms), instances: 1}
		var m contents
		m.read(r, f.start, ms, d)
		for j := range f.slots {
			f.slots[j].known = clamp(m.counts[j])
		}
		f.sum()
		u := f.usage(r, ms)
		u.Key = Key{ClientID: id.ClientID, Username: id.Username}
		return u, u.Known > 0
	}
	return Usage{}, false
}
