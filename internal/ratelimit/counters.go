package ratelimit

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// DefaultMaxKeys bounds the memory of [Counters] where no other bound is given:
// about 150 MB of counters with one limit each.
const DefaultMaxKeys = 1_000_000

const (
	defaultShards   = 256
	minKeysPerShard = 64   // for each shard; with less, there are fewer shards
	maxKeysPerShard = 4096 // with more, there are more: numbers have 16 bits
)

// Counters holds the counts of all keys that were active lately. All its
// methods are safe for concurrent use, and none of them waits for anything but
// the short critical section of another.
//
// Every time that is passed in must come from one clock that does not run
// backwards, such as [oauth-server/internal/clock]. A call that is a little
// older than the one before it, because two goroutines raced, is decided as of
// the later frame.
//
// Memory is bounded by a number of keys. When there are too many, an idle or
// little used key makes room for a new one; a key at its limit, or with counts
// that are not yet in the store, never does. Where every key is of that kind, a
// new key shares one of a fixed number of overflow counters with other new keys:
// it may be denied too early, but no key is admitted more often than its limits
// allow, and no limited key is freed.
type Counters struct {
	shift  int // of the upper half of a hash, to the shard
	shards []shard
	all    totals
	queue  queue
}

// totals are of all shards. What a decision on a key in memory reads is apart
// from what changes while others make and drop keys.
type totals struct {
	hashKey hashKey
	outage  outage
	maxKeys int64
	_       [64]byte

	keys, evicted, overflowed, expired atomic.Int64
}

// reserve makes room for one more key; false if there is none.
func (t *totals) reserve() bool {
	if t.keys.Add(1) <= t.maxKeys {
		return true
	}
	t.keys.Add(-1)
	return false
}

// NewCounters returns empty counters for at most maxKeys keys, [DefaultMaxKeys] if
// that is below 1.
func NewCounters(maxKeys int) *Counters {
	if maxKeys < 1 {
		maxKeys = DefaultMaxKeys
	}
	n := 1 << (bits.Len(uint(min(defaultShards, max(maxKeys/minKeysPerShard, 1)))) - 1)
	for maxKeys/n > maxKeysPerShard {
		n *= 2
	}
	c := &Counters{shift: 64 - bits.Len(uint(n-1)), shards: make([]shard, n)}
	c.all.hashKey, c.all.maxKeys = newHashKey(), int64(maxKeys)
	c.all.outage.instances.Store(1)
	c.queue.init(n)
	for i := range c.shards {
		c.shards[i].all, c.shards[i].number = &c.all, uint32(i)
	}
	return c
}

// Len is the number of keys in memory.
func (c *Counters) Len() int { return int(c.all.keys.Load()) }

// Stats is what the counters have done since they were made, and hold now.
type Stats struct {
	Keys       int64 // in memory
	MaxKeys    int64 // the bound
	Evicted    int64 // keys that made room for others
	Overflowed int64 // decisions on a shared counter because there was no room
	Expired    int64 // requests that grew too old to matter before they were known to be written
}

// Stats returns the totals.
func (c *Counters) Stats() Stats {
	return Stats{
		Keys: c.all.keys.Load(), MaxKeys: c.all.maxKeys,
		Evicted: c.all.evicted.Load(), Overflowed: c.all.overflowed.Load(), Expired: c.all.expired.Load(),
	}
}

// lookup returns the shard of a key, and the hash to find it there.
func (c *Counters) lookup(k Key) (*shard, hash) {
	h := c.all.hashKey.hash(k)
	return &c.shards[h.hi>>c.shift], h
}

// MaxCount is the most that one frame counts; more is cut off.
const MaxCount = math.MaxInt32

// clamp cuts a count off at both ends.
func clamp(n int64) uint32 {
	return uint32(min(max(n, 0), MaxCount))
}

// total is what a decision counts of a frame if every process has admitted as
// much as this one that is not yet known to be in the document: own is how many
// processes that are, normally 1.
func (s *slot) total(own int64) int64 {
	return min(max(int64(s.known)+own*(int64(s.pending)+int64(s.unclaimed)), 0), MaxCount)
}

// count adds n requests, or takes some back if n is negative.
func (s *slot) count(n int64) {
	s.unclaimed = int32(min(max(int64(s.unclaimed)+n, -MaxCount), MaxCount))
}

// advance brings a counter to the time ms: it shifts its frames if a new one has
// begun. A time before the newest frame changes nothing.
func (s *shard) advance(num uint32, r *rule, ms int64) {
	if h := s.hotOf(num); ms-h.start >= r.frame {
		s.shift(num, r, r.align(ms))
	}
}

// shift makes the frame that begins at start, which is a later one, the newest.
// What leaves the window unwritten is too old to matter.
func (s *shard) shift(num uint32, r *rule, start int64) {
	h := s.hotOf(num)
	slots, mine := s.slots(h, r), s.mine(num, r)
	n := int(min((start-h.start)/r.frame, int64(len(slots))))
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

// frames returns what the estimate of a counter is made from.
func (s *shard) frames(num uint32, r *rule) (f frames) {
	s.fill(&f, num, r)
	return f
}

// fill is frames, without a copy.
func (s *shard) fill(f *frames, num uint32, r *rule) {
	h := s.hotOf(num)
	f.slots, f.start, f.instances = s.slots(h, r), h.start, 1
	f.sum()
}

func seconds(ms int64) uint32 { return uint32(ms / 1000) } //nolint:gosec // until the year 2106

// unwritten is what the document is not known to have: in the pending write, and
// admitted since.
func unflushed(slots []slot) (pending, since int64) {
	for i := range slots {
		pending += int64(slots[i].pending)
		since += int64(slots[i].unclaimed)
	}
	return pending, since
}

// dirty reports whether requests wait to be taken up by a write.
func dirty(slots []slot) bool {
	for i := range slots {
		if slots[i].unclaimed != 0 {
			return true
		}
	}
	return false
}

func sumKnown(slots []slot) (n int64) {
	for i := range slots {
		n += int64(slots[i].known)
	}
	return n
}

// millis is the time as counters keep it.
func millis(now time.Time) int64 { return now.UnixMilli() }
