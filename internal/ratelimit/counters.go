package ratelimit

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultMaxKeys bounds the memory of [Counters] where nothing else is said: about
// 250 MB of counters with one limit each.
const DefaultMaxKeys = 1_000_000

const (
	maxShards    = 4096
	keysPerShard = 64 // below this many, fewer shards
)

// Counters holds the counts of all keys that were active lately. All its
// methods are safe for concurrent use, and none of them waits for anything but another's
// short critical section.
//
// Memory is bounded by a number of keys. When there are too many, an idle or
// little used key makes room for a new one; a key at its limit, or with counts
// that are not yet in the database, never does. Where every key is of that
// kind, a new key shares one of a fixed number of overflow counters with other
// new keys: it may be denied too early, but no key is ever admitted more often than its limits
// allow, and nobody who is limited is freed.
type Counters struct {
	seed   maphash.Seed
	shift  int // of a hash, to the shard
	shards []shard
	offset atomic.Int64 // milliseconds added to every now: the database's clock less ours
	all    totals
	syncer syncState
}

// shard is a part of the keys under one lock.
type shard struct {
	mu       sync.Mutex
	entries  map[uint64]*entry // by hash; entries of equal hash are chained
	overflow []*entry
	inbox    []*Counter // for the syncer
	spare    []*Counter // the inbox before, to be used again
	index    int
	all      *totals
	_        [128 - 104]byte // neighbours under other locks share no cache line
}

// totals are of all shards. None of them changes while a key in memory is
// decided on.
type totals struct {
	maxKeys                            int64
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

// entry is one key.
type entry struct {
	key    string // client_id and username, one after the other
	split  uint16 // length of the client_id
	gone   bool   // dropped from the table: whoever still holds it must let go
	shared bool   // an overflow entry
	shard  *shard
	next   *entry // of the same hash
	limits *Limits
	seen   int64      // when it was last asked for
	first  Counter    // of the first limit
	more   *[]Counter // of the further limits
}

// NewCounters returns empty counters for at most maxKeys keys, [DefaultMaxKeys] if
// that is below 1.
func NewCounters(maxKeys int) *Counters {
	if maxKeys < 1 {
		maxKeys = DefaultMaxKeys
	}
	n := 1 << (bits.Len(uint(min(maxShards, max(maxKeys/keysPerShard, 1)))) - 1)
	c := &Counters{seed: maphash.MakeSeed(), shift: 64 - bits.Len(uint(n-1)), shards: make([]shard, n)}
	c.all.maxKeys = int64(maxKeys)
	c.syncer.init(n)
	for i := range c.shards {
		c.shards[i].index = i
		c.shards[i].entries = make(map[uint64]*entry)
		c.shards[i].all = &c.all
	}
	return c
}

// SetOffset sets what is added to every now: by how much the database's clock
// is ahead of ours, so that all instances agree on frames.
func (c *Counters) SetOffset(d time.Duration) { c.offset.Store(d.Milliseconds()) }

// millis is the time as the counters count it.
func (c *Counters) millis(now time.Time) int64 { return now.UnixMilli() + c.offset.Load() }

func (c *Counters) shardOf(hash uint64) *shard { return &c.shards[hash>>c.shift] }

func (e *entry) is(k Key) bool {
	return len(e.key) == len(k.ClientID)+len(k.Username) && int(e.split) == len(k.ClientID) &&
		e.key[:e.split] == k.ClientID && e.key[e.split:] == k.Username
}

func (e *entry) name() Key { return Key{ClientID: e.key[:e.split], Username: e.key[e.split:]} }

// at returns the counter of the limit with that index.
func (e *entry) at(i int) *Counter {
	if i == 0 {
		return &e.first
	}
	return &(*e.more)[i-1]
}

func (s *shard) find(hash uint64, k Key) *entry {
	e := s.entries[hash]
	for e != nil && !e.is(k) {
		e = e.next
	}
	return e
}

func newEntry(s *shard, k Key, ls *Limits, ms int64) *entry {
	e := &entry{key: k.ClientID + k.Username, split: uint16(len(k.ClientID) & 0xffff), shard: s, limits: ls, seen: ms}
	if n := len(ls.rules); n > 1 {
		more := make([]Counter, n-1)
		e.more = &more
	}
	for i := range ls.rules {
		e.at(i).init(e, &ls.rules[i], ms)
	}
	return e
}

// insert adds an entry, for which room was reserved.
func (s *shard) insert(hash uint64, e *entry) {
	e.next = s.entries[hash]
	s.entries[hash] = e
}

// remove drops an entry that is in the table. Its room stays reserved.
func (s *shard) remove(hash uint64, e *entry) {
	if s.entries[hash] == e {
		if e.next == nil {
			delete(s.entries, hash)
		} else {
			s.entries[hash] = e.next
		}
	} else {
		p := s.entries[hash]
		for p.next != e {
			p = p.next
		}
		p.next = e.next
	}
	e.gone, e.next = true, nil
}

// Len is the number of keys in memory.
func (c *Counters) Len() int { return int(c.all.keys.Load()) }

// Stats is what the counters have done since they were made, and hold now.
type Stats struct {
	Keys       int64 // in memory
	MaxKeys    int64 // the bound
	Evicted    int64 // keys that made room for others
	Overflowed int64 // decisions on a shared counter because there was no room
	Expired    int64 // counts that grew too old to matter before they were written
}

// Stats returns what was counted so far.
func (c *Counters) Stats() Stats {
	return Stats{
		Keys: c.all.keys.Load(), MaxKeys: c.all.maxKeys,
		Evicted: c.all.evicted.Load(), Overflowed: c.all.overflowed.Load(), Expired: c.all.expired.Load(),
	}
}
