package subject

import (
	"hash/maphash"
	"math"
	"time"
)

// Options are the bounds of a [Memory]. A zero field selects its default.
type Options struct {
	// MaxEntries is the maximum number of refresh tokens, by default a million.
	MaxEntries int
	// MaxLifetime is the longest time that a token is remembered, by default 30 days.
	MaxLifetime time.Duration
}

// The defaults of [Options].
const (
	DefaultMaxEntries  = 1_000_000
	DefaultMaxLifetime = 30 * 24 * time.Hour
)

// A Memory maps the digest of a refresh token to its user. A token is bound to its client, so Get
// with another client ID finds nothing. The Memory stores digests of 16 bytes, so a collision is
// unlikely even among 2^40 tokens. It stores client IDs as 64-bit hashes with a random seed.
//
// When the Memory is full, it evicts the token that was added first. With a large MaxEntries it has
// several shards, each with its own order and its share of the entries. Tokens are not spread quite
// evenly, so a shard may be full when the whole Memory still has room for a few thousandths more.
// Get removes an expired token when it finds one, and every Put removes a few.
//
// A full Memory of the default size needs 90 bytes for a token with a subject of up to 39 bytes,
// and 64 more for each further 60 bytes of the subject. It never shrinks. It is safe for concurrent
// use.
type Memory struct {
	seed     maphash.Seed
	lifetime time.Duration
	shards   []shard // a power of two
}

// With more than minShard entries per shard, there are up to maxShards shards.
const (
	maxShards = 64
	minShard  = 1 << 10
)

// NewMemory returns an empty Memory. A negative option selects its default.
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
		limit := (o.MaxEntries + n - 1 - i) / n               // the sum over all shards is MaxEntries
		m.shards[i].limit = uint32(min(limit, math.MaxInt32)) //nolint:gosec // at least 1
	}
	return m
}

// Put stores the user of a refresh token and replaces an earlier entry. The entry expires at
// expires, to the second, or after the maximum lifetime. A zero expires means the maximum lifetime.
// Put removes the entry if it has already expired, if the digest is zero, or if [Reader.Read] would
// not return the subject.
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

// Get returns the user of a refresh token and whether it is known: it was stored for this client,
// has not expired, and was not evicted.
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

// Len returns the number of stored refresh tokens. It includes expired ones that are not removed
// yet.
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

// Bytes returns the allocated memory in bytes.
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

// shard returns the shard of a digest. It uses other bits of the digest than bucket.
func (m *Memory) shard(digest *[16]byte) *shard {
	return &m.shards[int(digest[0])&(len(m.shards)-1)]
}

func (m *Memory) hash(clientID string) [2]uint32 {
	h := maphash.String(m.seed, clientID)
	return [2]uint32{uint32(h >> 32), uint32(h)} //nolint:gosec // both halves
}

// short returns the half of a digest that is stored.
func short(d Digest) [16]byte { return [16]byte(d[:16]) }

// seconds returns a time in seconds since the epoch, clamped to 32 bits.
func seconds(t time.Time) uint32 { return uint32(min(max(t.Unix(), 0), math.MaxUint32)) }
