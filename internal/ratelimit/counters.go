package ratelimit

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
	"time"
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
// [oauth-server/internal/clock]. If two goroutines race, the call with the slightly earlier time is
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
	hashKey hashKey
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
func NewCounters(maxKeys int) *Counters { return newCounters(maxKeys, newHashKey()) }

// NewRepeatable is [NewCounters] with a hash key derived from the seed, for simulations: the syncer
// and evictions visit keys in the same order in every run.
func NewRepeatable(maxKeys int, seed uint64) *Counters {
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // repeatable
	var key hashKey
	for i := range key {
		key[i] = r.Uint64()
	}
	return newCounters(maxKeys, key)
}

func newCounters(maxKeys int, key hashKey) *Counters {
	if maxKeys < 1 {
		maxKeys = DefaultMaxKeys
	}
	n := 1 << (bits.Len(uint(min(defaultShards, max(maxKeys/minKeysPerShard, 1)))) - 1)
	for maxKeys/n > maxKeysPerShard {
		n *= 2
	}
	c := &Counters{shift: 64 - bits.Len(uint(n-1)), shards: make([]shard, 3*n)}
	c.all.hashKey, c.all.maxKeys = key, int64(maxKeys)
	c.all.outage.instances.Store(1)
	c.all.leasing.trip.Store(minSpacing)
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
func (c *Counters) lookup(k Key) (*shard, hash) {
	s, h := c.lookupOwn(k)
	switch {
	case k.isTotal():
		return c.totalShard(h), h
	case k.isSource():
		return &c.shards[uint64(len(c.shards)/3)+h.hi>>c.shift], h
	}
	return s, h
}

// lookupOwn is lookup for keys other than sources and totals. It is inlined.
func (c *Counters) lookupOwn(k Key) (*shard, hash) {
	h := c.all.hashKey.hash(k)
	return &c.shards[h.hi>>c.shift], h
}

// totalShard returns the shard of the total with this hash.
func (c *Counters) totalShard(h hash) *shard {
	return &c.shards[uint64(len(c.shards)/3*2)+h.hi>>c.shift]
}

// MaxCount is the largest count of one frame. Larger counts are clamped to it.
const MaxCount = math.MaxInt32

// clamp limits n to the range 0 to [MaxCount].
func clamp(n int64) uint32 {
	return uint32(min(max(n, 0), MaxCount))
}

// total returns the count of a frame for a decision: the known count, plus the unflushed count of
// this process times instances. It assumes that each instance has as many. instances is 1 except
// during an outage.
func (s *slot) total(instances int64) int64 {
	return min(max(int64(s.known)+instances*(int64(s.pending)+int64(s.unclaimed)), 0), MaxCount)
}

// count adds n requests. A negative n gives requests back.
func (s *slot) count(n int64) {
	s.unclaimed = int32(min(max(int64(s.unclaimed)+n, -MaxCount), MaxCount))
}

// advance shifts the frames of a counter if a new frame has started by ms. A time before the newest
// frame changes nothing.
func (s *shard) advance(num uint32, r *rule, ms int64) {
	if h := s.hotOf(num); ms+r.lead-h.start >= r.frame {
		s.shift(num, r, r.newest(ms))
	}
}

// shift makes the frame that starts at start the newest. start must be later than the present one.
// The frames that drop out are too old to matter.
func (s *shard) shift(num uint32, r *rule, start int64) {
	h := s.hotOf(num)
	slots, mine := s.slots(h, r), s.mine(num, r)
	n := int(min((start-h.start)/r.frame, int64(len(slots))))
	if r.Strict && n > 0 {
		s.shiftLease(num, slots, n)
	}
	for _, old := range slots[len(slots)-n:] {
		if lost := int64(old.pending) + int64(old.unclaimed); lost > 0 {
			s.all.expired.Add(lost)
		}
	}
	copy(slots[n:], slots)
	copy(mine[n:], mine)
	clear(slots[:n])
	clear(mine[:n])
	h.start = start
}

// frames returns the frames of a counter.
func (s *shard) frames(num uint32, r *rule) (f frames) {
	s.fill(&f, num, r)
	return f
}

// fill is frames without a copy.
func (s *shard) fill(f *frames, num uint32, r *rule) {
	h := s.hotOf(num)
	f.slots, f.start, f.instances = s.slots(h, r), h.start, 1
	if r.Strict {
		f.sumStrict()
		return
	}
	f.sum()
}

// seconds converts milliseconds to the format of hot.seen.
func seconds(ms int64) uint32 { return uint32(ms / 1000) } //nolint:gosec // until the year 2106

// unflushed returns the counts that the document may not have: pending and unclaimed.
func unflushed(slots []slot) (pending, unclaimed int64) {
	for i := range slots {
		pending += int64(slots[i].pending)
		unclaimed += int64(slots[i].unclaimed)
	}
	return pending, unclaimed
}

// dirty reports whether any frame has unclaimed counts.
func dirty(slots []slot) bool {
	for i := range slots {
		if slots[i].unclaimed != 0 {
			return true
		}
	}
	return false
}

// sumKnown returns the known counts of all frames.
func sumKnown(slots []slot) (n int64) {
	for i := range slots {
		n += int64(slots[i].known)
	}
	return n
}

// millis returns the time in milliseconds since the epoch, which is the format of counters.
func millis(now time.Time) int64 { return now.UnixMilli() }
