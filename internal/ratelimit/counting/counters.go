package counting

import (
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/slab"
)

// DefaultMaxKeys is the default bound on the keys of [Counters]. With one limit each they need
// about 150 MB, and ten times as much if all limits are strict with 60 frames.
const DefaultMaxKeys = 1_000_000

const (
	defaultShards   = 256
	minKeysPerShard = 64   // fewer shards if there are fewer keys
	maxKeysPerShard = 4096 // more shards if there are more keys: counter numbers have 16 bits
)

// Counters holds the counts of all recently active keys. Its methods are safe for concurrent use.
// Except for [Counters.Await] they block only for the short critical section of another call.
//
// All times passed in must come from one clock that does not run backwards, such as
// [oauth-server/internal/syncer/clock]. If two goroutines race, the call with the slightly earlier time is
// decided in the later frame.
//
// The number of keys bounds the memory. When it is reached, a new key evicts an idle or little used
// key. It never evicts a key at its limit, or a key with counts that are not in the store yet. If
// all keys are like that, the new key shares one of a fixed number of overflow counters with other
// new keys. It may then be denied too early, but no key is admitted more often than its limits
// allow, and no limited key is freed.
type Counters struct {
	shift int // shifts the upper half of a hash to the index of its shard
	// shards has three equal parts: for users, for sources, and for the totals of clients. Locks
	// are taken in the order of shards, so the lock of a total is always the last. It is held as
	// briefly as possible because all requests of the client need it.
	shards []shard
	all    totals
	queue  queue
}

// totals is the state that all shards share. The fields that a decision on a known key reads are on
// other cache lines than the fields that change when keys are added and removed.
type totals struct {
	hashKey slab.HashKey
	outage  outage
	maxKeys int64
	leasing leasing
	_       [64]byte

	keys, sources, evicted, overflowed, expired atomic.Int64
}

// sourcesPart limits the keys of sources to this part of maxKeys, in addition to maxKeys for all
// other keys. A client can send from any number of addresses. With separate room, sources cannot
// evict users, and users cannot evict sources.
const sourcesPart = 4

// kind is the kind of the keys in a shard.
type kind uint8

const (
	ofUsers   kind = iota // of users, and of clients themselves
	ofSources             // of clients from one source address
	ofTotals              // of clients over all their users
)

// room returns the counter of keys that the shard uses, and its bound.
func (s *shard) room() (keys *atomic.Int64, most int64) {
	if s.kind == ofSources {
		return &s.all.sources, max(s.all.maxKeys/sourcesPart, 1)
	}
	return &s.all.keys, s.all.maxKeys
}

// reserve counts one more key. If there is no room it returns false and counts nothing. A total
// always has room.
func (s *shard) reserve() bool {
	keys, most := s.room()
	if keys.Add(1) <= most || s.kind == ofTotals {
		return true
	}
	keys.Add(-1)
	return false
}

// release undoes reserve.
func (s *shard) release() {
	keys, _ := s.room()
	keys.Add(-1)
}

// NewCounters returns empty counters for at most maxKeys keys. Below 1 means [DefaultMaxKeys].
func NewCounters(maxKeys int) *Counters {
	if maxKeys < 1 {
		maxKeys = DefaultMaxKeys
	}
	n := 1 << (bits.Len(uint(min(defaultShards, max(maxKeys/minKeysPerShard, 1)))) - 1)
	for maxKeys/n > maxKeysPerShard {
		n *= 2
	}
	c := &Counters{shift: 64 - bits.Len(uint(n-1)), shards: make([]shard, 3*n)}
	c.all.hashKey, c.all.maxKeys = slab.NewHashKey(), int64(maxKeys)
	c.all.outage.instances.Store(1)
	c.all.leasing.trip.Store(ratelimit.MinSpacing)
	c.queue.init(len(c.shards))
	for i := range c.shards {
		c.shards[i].all, c.shards[i].number, c.shards[i].kind = &c.all, uint32(i), kind(i/n) //nolint:gosec // three kinds
	}
	return c
}

// Len returns the number of keys in memory.
func (c *Counters) Len() int { return int(c.all.keys.Load() + c.all.sources.Load()) }

// Stats has totals since the counters were created, and their present size.
type Stats struct {
	Keys       int64 // in memory, without sources, which have room of their own (a quarter of MaxKeys)
	MaxKeys    int64 // the bound on Keys
	Evicted    int64 // keys evicted to make room
	Overflowed int64 // decisions on an overflow counter, for lack of room
	Expired    int64 // requests that left the window before the store confirmed them
}

// Stats returns the totals.
func (c *Counters) Stats() Stats {
	return Stats{
		Keys: c.all.keys.Load(), MaxKeys: c.all.maxKeys,
		Evicted: c.all.evicted.Load(), Overflowed: c.all.overflowed.Load(), Expired: c.all.expired.Load(),
	}
}

// lookup returns the shard of a key and its hash.
func (c *Counters) lookup(k ratelimit.Key) (*shard, slab.Hash) {
	s, h := c.lookupOwn(k)
	switch {
	case k.IsTotal():
		return c.totalShard(h), h
	case k.IsSource():
		return &c.shards[uint64(len(c.shards)/3)+h.Hi>>c.shift], h
	}
	return s, h
}

// lookupOwn is lookup for keys other than sources and totals. It is inlined.
func (c *Counters) lookupOwn(k ratelimit.Key) (*shard, slab.Hash) {
	h := c.all.hashKey.Hash(k)
	return &c.shards[h.Hi>>c.shift], h
}

// totalShard returns the shard of the total with this hash.
func (c *Counters) totalShard(h slab.Hash) *shard {
	return &c.shards[uint64(len(c.shards)/3*2)+h.Hi>>c.shift]
}

// advance shifts the frames of a counter if a new frame has started by ms. A time before the newest
// frame changes nothing.
func (s *shard) advance(num uint32, r *ratelimit.Rule, ms int64) {
	if h := s.HotOf(num); ms+r.LeadMS-h.Start >= r.FrameMS {
		s.shift(num, r, r.Newest(ms))
	}
}

// shift makes the frame that starts at start the newest. start must be later than the present one.
// The frames that drop out are too old to matter.
func (s *shard) shift(num uint32, r *ratelimit.Rule, start int64) {
	h := s.HotOf(num)
	slots, mine := s.Slots(h, r), s.Mine(num, r)
	n := int(min((start-h.Start)/r.FrameMS, int64(len(slots))))
	if r.Strict && n > 0 {
		s.shiftLease(num, slots, n)
	}
	for _, old := range slots[len(slots)-n:] {
		if lost := int64(old.Pending) + int64(old.Unclaimed); lost > 0 {
			s.all.expired.Add(lost)
		}
	}
	copy(slots[n:], slots)
	copy(mine[n:], mine)
	clear(slots[:n])
	clear(mine[:n])
	h.Start = start
}

// frames returns the frames of a counter.
func (s *shard) frames(num uint32, r *ratelimit.Rule) (f ratelimit.Frames) {
	h := s.HotOf(num)
	f.Slots, f.Start, f.Instances = s.Slots(h, r), h.Start, 1
	f.Sum(r)
	return f
}

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
	least, looked := 1.0, 0 // a key at its limit has used all of it
	n := int(s.Numbers)
	if n < 2 {
		return 0, false
	}
	begin := rand.IntN(n - 1) //nolint:gosec // the choice of the victim needs no secrecy
	for i := 0; i < n-1 && looked < evictSamples; i++ {
		num := uint32((begin+i)%(n-1) + 1) //nolint:gosec // a number
		if !s.IsKey(num) {
			continue
		}
		looked++
		if s.idle(num, ms) {
			return num, true
		}
		if u := s.usage(num, ms); u < least && s.flushed(num) {
			victim, least = num, u
		}
	}
	return victim, false
}

// expire removes an idle key. Its unclaimed counts are too old to matter.
func (s *shard) expire(first uint32) {
	nums, n := s.ChainOf(first)
	for _, num := range nums[:n] {
		if _, unclaimed := ratelimit.SumUnflushed(s.SlotsOf(num)); unclaimed > 0 {
			s.all.expired.Add(unclaimed)
		}
	}
	s.remove(first)
}

// idle reports whether a key had no request for two windows and has no pending write. All its
// counts are then too old to matter.
func (s *shard) idle(first uint32, ms int64) bool {
	since := ms - (int64(s.HotOf(first).Seen)+1)*1000
	for num := first; num != 0; num = s.HotOf(num).Next {
		if since < 2*s.RuleOf(num).WindowMS || s.PendingSeq(num) != 0 {
			return false
		}
	}
	return true
}

// flushed reports whether the store has confirmed all counts of a key.
func (s *shard) flushed(first uint32) bool {
	if s.waiting[first] != nil {
		return false
	}
	for num := first; num != 0; num = s.HotOf(num).Next {
		if s.PendingSeq(num) != 0 || ratelimit.HasUnclaimed(s.SlotsOf(num)) || s.holds(num) {
			return false
		}
	}
	return true
}

// usage returns the highest used share among the limits of a key.
func (s *shard) usage(first uint32, ms int64) (u float64) {
	for num := first; num != 0; num = s.HotOf(num).Next {
		r := s.RuleOf(num)
		s.advance(num, r, ms)
		f := s.frames(num, r)
		u = max(u, f.Estimate(r, ms)/float64(r.Requests))
	}
	return u
}

// Sweep removes the keys without a request for two windows and returns how many. It locks one shard
// at a time, for microseconds. Then it drops compiled limits that are no longer in use.
func (c *Counters) Sweep(now time.Time) (dropped int) {
	defer ratelimit.SweepLimits()
	return c.dropWhere(func(s *shard, num uint32) bool {
		if s.idle(num, ratelimit.Millis(now)) {
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
		for num := uint32(1); num < s.Numbers; num++ {
			if s.IsKey(num) && drop(s, num) {
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
func (c *Counters) Reset(k ratelimit.Key) bool {
	s, h := c.lookup(k.Bounded())
	s.mu.Lock()
	defer s.mu.Unlock()
	num := s.Find(h)
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
		if s.IsOf(num, clientID) {
			s.remove(num)
			return true
		}
		return false
	})
}
