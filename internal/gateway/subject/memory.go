package subject

import (
	"hash/maphash"
	"math"
	"time"
)

// Options bounds a [Memory]. The zero value of a field is its default.
type Options struct {
	// MaxEntries is how many refresh tokens are remembered, by default a million.
	MaxEntries int
	// MaxLifetime is how long one is remembered at most, by default 30 days.
	MaxLifetime time.Duration
}

// The defaults of [Options].
const (
	DefaultMaxEntries  = 1_000_000
	DefaultMaxLifetime = 30 * 24 * time.Hour
)

// A Memory leads from the digest of a refresh token to the user it is for. A token is bound to its
// client: the id of another client finds nothing. Only digests are kept, of 16 bytes, so that not even
// among 2^40 tokens a collision is to be expected; client ids are kept as hashes of 64 bits with a
// random seed.
//
// If there is no room the token that was put first is forgotten. With a large MaxEntries there are
// shards, each with its own order and its part of the entries; as tokens are not spread quite evenly,
// one shard may be full when all together have room for a few thousandths more. What has expired is
// found when it is asked for, and little by little with every Put.
//
// A full Memory of the default size needs 90 bytes for a token whose subject has up to 39 bytes, and 64
// more for each 60 bytes that the subject is longer. It never shrinks. It may be used by many goroutines
// at once.
type Memory struct {
	seed     maphash.Seed
	lifetime time.Duration
	shards   []shard // a power of two
}

// Above minShard entries a shard, there are up to maxShards.
const (
	maxShards = 64
	minShard  = 1 << 10
)

// NewMemory returns an empty memory. A negative option is as its default.
func NewMemory(o Options) *Memory {
	if o.MaxEntries <= 0 {
		o.MaxEntries = DefaultMaxEntries
	}
	if o.MaxLifetime <= 0 {
		o.MaxLifetime = DefaultMaxLifetime
	}
	n := 1
	for n < maxShards && o.MaxEntries >= 2*n*minShard {
		n *= 2
	}
	m := &Memory{seed: maphash.MakeSeed(), lifetime: o.MaxLifetime, shards: make([]shard, n)}
	for i := range m.shards {
		limit := (o.MaxEntries + n - 1 - i) / n               // of all shards together: MaxEntries
		m.shards[i].limit = uint32(min(limit, math.MaxInt32)) //nolint:gosec // at least 1
	}
	return m
}

// Put remembers whose a refresh token is, in place of what was known of it. It is forgotten at expires,
// to the second, or after the longest lifetime, which is also for a zero time. If it has expired, or the
// digest is zero, or the subject is none that [Reader.Read] returns, the token is forgotten.
func (m *Memory) Put(now time.Time, digest Digest, clientID, subject string, expires time.Time) {
	longest := now.Add(m.lifetime)
	if expires.IsZero() || expires.After(longest) {
		expires = longest
	}
	e := entry{digest: short(digest), client: m.hash(clientID), expires: seconds(expires)}
	s := m.shard(&e.digest)
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.find(&e.digest); old != 0 {
		s.remove(old)
	}
	if at := seconds(now); e.expires > at && !digest.IsZero() && fit([]byte(subject)) {
		s.put(at, &e, subject)
	}
}

// Get returns whose a refresh token is, and whether that is known: it was put for this client, has not
// expired, and was not forgotten for want of room.
func (m *Memory) Get(now time.Time, digest Digest, clientID string) (subject string, ok bool) {
	key, client := short(digest), m.hash(clientID)
	s := m.shard(&key)
	s.mu.Lock()
	defer s.mu.Unlock()
	num := s.find(&key)
	if num == 0 {
		return "", false
	}
	e := s.entries.at(num)
	switch {
	case e.expires <= seconds(now):
		s.remove(num)
		return "", false
	case e.client != client:
		return "", false
	}
	return s.subject(e), true
}

// Len returns how many refresh tokens are remembered. Some may have expired and not been found yet.
func (m *Memory) Len() int {
	n := 0
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		n += int(s.length)
		s.mu.Unlock()
	}
	return n
}

// Bytes returns how much memory is allocated for them.
func (m *Memory) Bytes() int {
	n := 0
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		n += s.bytes()
		s.mu.Unlock()
	}
	return n
}

// shard returns the shard of a digest. Buckets go by other bits.
func (m *Memory) shard(digest *[16]byte) *shard {
	return &m.shards[int(digest[0])&(len(m.shards)-1)]
}

func (m *Memory) hash(clientID string) [2]uint32 {
	h := maphash.String(m.seed, clientID)
	return [2]uint32{uint32(h >> 32), uint32(h)} //nolint:gosec // both halves
}

// short returns the half of a digest that is kept.
func short(d Digest) [16]byte { return [16]byte(d[:16]) }

// seconds returns a time as seconds since the epoch, as far as they fit.
func seconds(t time.Time) uint32 { return uint32(min(max(t.Unix(), 0), math.MaxUint32)) }
