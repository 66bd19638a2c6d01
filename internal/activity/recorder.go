package activity

import (
	"hash/maphash"
	"maps"
	"math"
	"sync"
	"time"

	"oauth-server/internal/ratelimit"
)

// The time that is covered, and its resolution: the oldest slot is dropped as a whole.
const (
	Window = 10 * time.Minute
	slot   = 30 * time.Second
	slots  = int(Window / slot)
)

// DefaultMaxClients takes about 40 MB.
const DefaultMaxClients = 10_000

const shards = 64

// Observation is one request and how it was decided.
type Observation struct {
	ClientID string
	Username string // empty: the client itself
	Kind     Kind
	Decision *ratelimit.Decision
	// Tried is the outcome that a candidate would have had, as in dry-run. Passed: there was none. TriedSince is when
	// its limits began to be tried, which identifies it: the counts of an earlier one are dropped.
	Tried      ratelimit.Outcome
	TriedSince time.Time
}

// Recorder counts decisions. It is safe for concurrent use.
type Recorder struct {
	seed    maphash.Seed
	started time.Time
	shards  [shards]shard
}

type shard struct {
	mu      sync.Mutex
	clients map[string]*client
	max     int
	users   int   // of all clients
	swept   int64 // number of the last slot in which users were removed
	dropped int64 // number of the last slot that removed a client to make room
	_       [64]byte
}

// client has the counts of one client.
type client struct {
	slots      [slots]counts
	kinds      [2]*kindRecord // nil: there was no request of that kind
	triedSince time.Time
	users      map[string]*user // some of those with denials
}

// counts of one slot. It counts only if number is that of a slot in the window.
type counts struct {
	number int64
	Counts
}

// New returns an empty recorder for at most maxClients clients, [DefaultMaxClients] if
// that is below 1. Its reports begin at now.
func New(maxClients int, now time.Time) *Recorder {
	if maxClients < 1 {
		maxClients = DefaultMaxClients
	}
	r := &Recorder{seed: maphash.MakeSeed(), started: now.UTC()}
	for i := range r.shards {
		r.shards[i] = shard{clients: map[string]*client{}, max: max(maxClients/shards, 1)}
	}
	return r
}

// number names the slot that holds the time.
func number(now time.Time) int64 { return now.UnixMilli() / slot.Milliseconds() }

// live reports whether the slot of that number is still in the window.
func live(number, now int64) bool { return number > now-int64(slots) && number <= now }

// index is the place of a slot in its ring.
func index(number int64) int64 { return ((number % int64(slots)) + int64(slots)) % int64(slots) }

// Record counts one request. If there is no room for its client, one with few requests is forgotten, and reports are
// marked as incomplete.
func (r *Recorder) Record(now time.Time, o Observation) {
	s, n := r.shard(o.ClientID), number(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.client(o.ClientID, n)
	if o.Tried != ratelimit.Passed && !o.TriedSince.Equal(c.triedSince) {
		c.forgetTrial(o.TriedSince)
	}
	c.at(n).add(&o)
	s.recordDenied(c, n, &o)
	if o.Decision.Counted() {
		c.kind(o.Kind).record(now, n, o.Decision)
	}
}

// Shed counts one request that was refused because the server is overloaded, or in dry-run would have been, with the
// same room for clients as [Recorder.Record]. A request without a client is not counted.
func (r *Recorder) Shed(now time.Time, clientID string, dryRun bool) {
	if clientID == "" {
		return
	}
	s, n := r.shard(clientID), number(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.client(clientID, n)
	if dryRun {
		c.at(n).WouldShed++
	} else {
		c.at(n).Shed++
	}
}

// Issuance is one access token that was issued.
type Issuance struct {
	ClientID string
	Wasted   bool // an equal one had more than half of its life left
	Refresh  bool // in exchange for a refresh token
}

// RecordIssued counts one token, with the same room for clients as [Recorder.Record].
func (r *Recorder) RecordIssued(now time.Time, i Issuance) {
	s, n := r.shard(i.ClientID), number(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.client(i.ClientID, n)
	at := c.at(n)
	at.Issued++
	if i.Wasted {
		at.Wasted++
		if i.Refresh {
			at.EarlyRefreshes++
		}
	}
}

// shard returns the shard that the client is in.
func (r *Recorder) shard(clientID string) *shard {
	return &r.shards[maphash.String(r.seed, clientID)%shards]
}

// client returns the client of that ID, also one that is new.
func (s *shard) client(id string, now int64) *client {
	c := s.clients[id]
	if c == nil {
		c = s.admit(id, now)
	}
	return c
}

// admit adds a client. If there is no room, clients without a request in the window are removed first, and otherwise one
// with few requests: at a gateway anybody can send names, and these must not keep out those that are used.
func (s *shard) admit(id string, now int64) *client {
	if len(s.clients) >= s.max {
		maps.DeleteFunc(s.clients, func(_ string, c *client) bool {
			gone := !c.seen(now)
			if gone {
				s.users -= len(c.users)
			}
			return gone
		})
	}
	c := &client{}
	if len(s.clients) >= s.max {
		c = s.evict(now)
	}
	s.clients[id] = c
	return c
}

// sampled is how many clients are compared to find one with few requests.
const sampled = 8

// evict removes the client with the fewest requests of some, and returns its memory, emptied.
func (s *shard) evict(now int64) *client {
	var least string
	fewest, left := uint64(math.MaxUint64), sampled
	for id, c := range s.clients { // in random order
		if n := c.requests(now); n < fewest {
			least, fewest = id, n
		}
		if left--; left == 0 {
			break
		}
	}
	c := s.clients[least]
	s.users -= len(c.users)
	delete(s.clients, least)
	s.dropped, *c = now, client{}
	return c
}

// requests is how many there were in the window.
func (c *client) requests(now int64) (n uint64) {
	for i := range c.slots {
		if live(c.slots[i].number, now) {
			n += c.slots[i].Total() + c.slots[i].Shed
		}
	}
	return n
}

func (c *client) seen(now int64) bool {
	for i := range c.slots {
		if live(c.slots[i].number, now) {
			return true
		}
	}
	return false
}

// at returns the counts of the slot of that number, which replace those of an older slot
// in the same place.
func (c *client) at(n int64) *counts {
	at := &c.slots[index(n)]
	if at.number != n {
		*at = counts{number: n}
	}
	return at
}

// forgetTrial drops the counts of an earlier candidate.
func (c *client) forgetTrial(since time.Time) {
	c.triedSince = since
	for i := range c.slots {
		s := &c.slots[i]
		s.CandidateCounts = CandidateCounts{}
	}
	for _, u := range c.users {
		for i := range u.slots {
			u.slots[i].denied[2] = 0
		}
	}
}

func (c *counts) add(o *Observation) {
	switch o.Decision.Outcome {
	case ratelimit.Allowed:
		c.Allowed++
	case ratelimit.Denied:
		c.Denied++
	case ratelimit.WouldDeny:
		c.WouldDeny++
	case ratelimit.Reused:
		c.Reused++
	case ratelimit.WouldReuse:
		c.WouldReuse++
	case ratelimit.Delayed:
		c.Delayed++
	case ratelimit.WouldDelay:
		c.WouldDelay++
	case ratelimit.Banned:
		c.Banned++
	case ratelimit.WouldBan:
		c.WouldBan++
	case ratelimit.Trusted:
		c.Trusted++
	case ratelimit.Passed:
		c.Off++
	}
	c.tried(o.Tried)
}

func (c *CandidateCounts) tried(o ratelimit.Outcome) {
	if o != ratelimit.Passed {
		c.Tried++
	}
	switch o {
	case ratelimit.WouldDeny:
		c.CandidateWouldDeny++
	case ratelimit.WouldReuse:
		c.CandidateWouldReuse++
	case ratelimit.WouldDelay:
		c.CandidateWouldDelay++
	case ratelimit.WouldBan:
		c.CandidateWouldBan++
	default: // admitted
	}
}
