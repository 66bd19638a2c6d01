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
	Known     int64         // g: known to be in the database
	Unflushed int64         // i: admitted here, not known to be there
	Estimate  float64       // requests inside the window
	Remaining int64         // requests that would pass now
	FreeIn    time.Duration // until one request passes; 0 if one would now
	LastSeen  time.Time     // when this process was last asked
}

// Ratio is the share of the limit that is used; above 1 where a limit was lowered.
func (u Usage) Ratio() float64 { return u.Estimate / float64(u.Limit.Requests) }

// Usage returns the counters of one key, in the order of its limits; none if
// it is not in memory.
func (c *Counters) Usage(now time.Time, k Key) []Usage {
	k = k.bounded()
	hash := k.hash(c.seed)
	s := c.shardOf(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.find(hash, k); e != nil {
		return e.usages(nil, c.millis(now))
	}
	return nil
}

// Find returns the counters of a key, for [Counters.Look] and what follows; none if
// it is not in memory.
func (c *Counters) Find(k Key) (out []*Counter) {
	k = k.bounded()
	hash := k.hash(c.seed)
	s := c.shardOf(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.find(hash, k); e != nil {
		for i := range e.limits.rules {
			out = append(out, e.at(i))
		}
	}
	return out
}

// ClientUsage returns the counters of a client and its users, the most used
// first, at most max of them. It looks at every key in memory.
func (c *Counters) ClientUsage(now time.Time, clientID string, limit int) []Usage {
	return c.most(now, limit, func(k Key) bool { return k.ClientID == clientID })
}

// Top returns the most used counters of all, at most max of them. It looks at
// every key in memory.
func (c *Counters) Top(now time.Time, limit int) []Usage {
	return c.most(now, limit, func(Key) bool { return true })
}

// kept is how many more counters than asked for are gathered before they are
// sorted and cut.
const kept = 100

// most goes through the shards, one at a time under its lock, and passes over
// keys that are less used than what it has found already.
func (c *Counters) most(now time.Time, limit int, want func(Key) bool) (out []Usage) {
	if limit < 1 {
		return nil
	}
	ms, least := c.millis(now), 0.0
	cut := func() {
		slices.SortFunc(out, byRatio)
		if len(out) > limit {
			out, least = out[:limit], out[limit-1].Ratio()
		}
	}
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		for _, e := range s.entries {
			for ; e != nil; e = e.next {
				if want(e.name()) && e.usage(ms) >= least {
					out = e.usages(out, ms)
				}
			}
			if len(out) > limit+kept {
				cut()
			}
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

func (e *entry) usages(out []Usage, ms int64) []Usage {
	for i := range e.limits.rules {
		r, x := &e.limits.rules[i], e.at(i)
		at := x.observe(r, ms)
		if !x.live() {
			continue
		}
		u := Usage{
			Key: e.name(), Limit: r.Limit, Known: x.known(), Unflushed: x.unflushed(),
			Estimate: x.estimate(r, at), Remaining: max(r.Requests-x.floor(r, at), 0),
			LastSeen: time.UnixMilli(e.seen),
		}
		if u.Remaining == 0 {
			u.FreeIn = time.Duration(x.firstBelow(r, at, r.Requests)-ms) * time.Millisecond
		}
		out = append(out, u)
	}
	return out
}

// Reset forgets the key: its next request is counted from zero. It reports
// whether the key was in memory.
func (c *Counters) Reset(k Key) bool {
	k = k.bounded()
	hash := k.hash(c.seed)
	s := c.shardOf(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.find(hash, k)
	if e != nil {
		s.remove(hash, e)
		s.all.keys.Add(-1)
	}
	return e != nil
}

// ResetClient forgets the client and all its users, and returns how many keys
// that were.
func (c *Counters) ResetClient(clientID string) (n int) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		for hash, e := range s.entries {
			for e != nil {
				next := e.next
				if e.name().ClientID == clientID {
					s.remove(hash, e)
					s.all.keys.Add(-1)
					n++
				}
				e = next
			}
		}
		s.mu.Unlock()
	}
	return n
}
