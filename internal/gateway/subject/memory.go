package subject

import (
	"hash/maphash"
	"math"
	"sync"
	"time"
)

// The defaults of a [Memory].
const (
	DefaultMaxEntries  = 1_000_000
	DefaultMaxLifetime = 30 * 24 * time.Hour
)

// A Memory maps the digest of a refresh token to its user. A token is bound to its client, so Get
// with another client ID finds nothing. The Memory stores digests of 16 bytes, so a collision is
// unlikely even among 2^40 tokens. It stores client IDs as 64-bit hashes with a random seed.
//
// When the Memory is full, it evicts the token that was added first. Get removes an expired token
// when it finds one, and every Put removes a few.
//
// A full Memory of the default size needs about 125 bytes for a token, and more for a subject of
// more than 39 bytes. Neither the entries nor the index contain pointers that the garbage collector
// would have to follow. A Memory never shrinks. It is safe for concurrent use.
type Memory struct {
	seed  maphash.Seed
	limit int // maximum number of entries

	mu     sync.Mutex
	index  map[[16]byte]uint32 // the number of each entry
	long   map[[16]byte]string // the subjects that do not fit into their entries
	chunks []*[chunk]entry     // the entries, numbered from 1
	used   uint32              // number of allocated entries
	free   uint32              // first free entry; 0: none
	oldest uint32              // the list of the entries in the order of their Puts
	newest uint32
	hand   uint32 // the last entry that sweep checked
}

// chunk is the number of entries that are allocated together, so that entries are never copied.
const chunk = 256

// An entry is a refresh token with its user.
type entry struct {
	digest  [16]byte // the first half of the token's SHA-256
	client  [2]uint32
	expires uint32          // seconds since the epoch
	older   uint32          // the entry that was put before this one; 0: none
	newer   uint32          // the entry that was put after this one, or the next free one; 0: none
	size    uint8           // of the subject in bytes; 0: the entry is free
	subject [shortSize]byte // empty if the subject is longer
}

// shortSize is the number of subject bytes in an entry. It fits a UUID of 36 characters, rounded up
// to make the size of the entry a multiple of 4.
const shortSize = 39

// NewMemory returns an empty Memory for at most maxEntries tokens. A value below 1 means
// [DefaultMaxEntries].
func NewMemory(maxEntries int) *Memory {
	if maxEntries < 1 {
		maxEntries = DefaultMaxEntries
	}
	return &Memory{
		seed: maphash.MakeSeed(), limit: min(maxEntries, math.MaxInt32),
		index: map[[16]byte]uint32{}, long: map[[16]byte]string{},
	}
}

// Put stores the user of a refresh token and replaces an earlier entry. The entry expires at
// expires, to the second, or after [DefaultMaxLifetime]. A zero expires means that lifetime. Put
// removes the entry if it has already expired, if the digest is zero, or if [Reader.Read] would not
// return the subject.
func (m *Memory) Put(now time.Time, digest Digest, clientID, subject string, expires time.Time) {
	longest := now.Add(DefaultMaxLifetime)
	if expires.IsZero() || expires.After(longest) {
		expires = longest
	}
	e := entry{digest: short(digest), client: m.hash(clientID), expires: seconds(expires)}
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.index[e.digest]; old != 0 {
		m.remove(old)
	}
	if at := seconds(now); e.expires > at && !digest.IsZero() && Fit(subject) {
		m.sweep(at)
		m.add(&e, subject)
	}
}

// Get returns the user of a refresh token and whether it is known: it was stored for this client,
// has not expired, and was not evicted.
func (m *Memory) Get(now time.Time, digest Digest, clientID string) (subject string, ok bool) {
	key, client := short(digest), m.hash(clientID)
	m.mu.Lock()
	defer m.mu.Unlock()
	num := m.index[key]
	if num == 0 {
		return "", false
	}
	switch e := m.at(num); {
	case e.expires <= seconds(now):
		m.remove(num)
		return "", false
	case e.client != client:
		return "", false
	case e.size > shortSize:
		return m.long[key], true
	default:
		return string(e.subject[:e.size]), true
	}
}

// Len returns the number of stored refresh tokens. It includes expired ones that are not removed
// yet.
func (m *Memory) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.index)
}

// at returns an entry.
func (m *Memory) at(num uint32) *entry { return &m.chunks[(num-1)/chunk][(num-1)%chunk] }

// add adds an entry as the newest. It evicts the oldest if the Memory is full. The digest must not
// have an entry.
func (m *Memory) add(e *entry, subject string) {
	if len(m.index) >= m.limit {
		m.remove(m.oldest)
	}
	num := m.free
	if num != 0 {
		m.free = m.at(num).newer
	} else {
		if int(m.used) == len(m.chunks)*chunk {
			m.chunks = append(m.chunks, new([chunk]entry))
		}
		m.used++
		num = m.used
	}
	e.size = uint8(len(subject)) //nolint:gosec // at most maxSubject
	if len(subject) > shortSize {
		m.long[e.digest] = subject
	} else {
		copy(e.subject[:], subject)
	}
	e.older = m.newest
	*m.at(num) = *e
	*m.newerOf(e.older) = num
	m.newest, m.index[e.digest] = num, num
}

// remove frees an entry.
func (m *Memory) remove(num uint32) {
	e := m.at(num)
	delete(m.index, e.digest)
	delete(m.long, e.digest)
	*m.newerOf(e.older) = e.newer
	if e.newer != 0 {
		m.at(e.newer).older = e.older
	} else {
		m.newest = e.older
	}
	*e = entry{newer: m.free}
	m.free = num
}

// newerOf returns the place that names the entry after this one. The place before the first entry
// is oldest.
func (m *Memory) newerOf(num uint32) *uint32 {
	if num == 0 {
		return &m.oldest
	}
	return &m.at(num).newer
}

// sweepStep is the number of entries that each Put checks. It is more than one, so the hand moves
// faster than new entries arrive, and expired entries are removed before they are evicted.
const sweepStep = 4

// sweep removes the expired entries among the next few.
func (m *Memory) sweep(now uint32) {
	for range min(sweepStep, m.used) {
		m.hand = m.hand%m.used + 1
		if e := m.at(m.hand); e.size != 0 && e.expires <= now {
			m.remove(m.hand)
		}
	}
}

func (m *Memory) hash(clientID string) [2]uint32 {
	h := maphash.String(m.seed, clientID)
	return [2]uint32{uint32(h >> 32), uint32(h)} //nolint:gosec // both halves
}

// short returns the half of a digest that is stored.
func short(d Digest) [16]byte { return [16]byte(d[:16]) }

// seconds returns a time in seconds since the epoch, clamped to 32 bits.
func seconds(t time.Time) uint32 { return uint32(min(max(t.Unix(), 0), math.MaxUint32)) }
