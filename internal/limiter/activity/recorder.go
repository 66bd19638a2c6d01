package activity

import (
	"hash/maphash"
	"iter"
	"maps"
	"math"
	"sync"
	"time"

	"oauth-server/internal/ratelimit"
)

// The covered time, and its resolution. The oldest slot is dropped as a whole.
const (
	Window = 10 * time.Minute
	slot   = 30 * time.Second
	slots  = int(Window / slot)
)

// DefaultMaxClients clients take about 40 MB.
const DefaultMaxClients = 10_000

const shards = 64

// Observation is one request and its decision.
type Observation struct {
	ClientID string
	Username string // empty: the client itself
	Kind     Kind
	Decision *ratelimit.Decision
	// Tried is the outcome under a candidate, as in dry-run; Passed: there was no candidate.
	// TriedSince is the start of the trial, which identifies the candidate. The counts of an
	// earlier candidate are dropped.
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
	users   int   // number of users of all clients
	swept   int64 // number of the slot of the last removal of users
	dropped int64 // number of the slot of the last eviction of a client
	_       [64]byte
}

// window has one value per time slot. A value is valid only if its number is a slot in the window.
type window[T any] [slots]struct {
	number int64
	value  T
}

// at returns a pointer to the value of a slot. The value of an older slot in the same place is
// cleared.
func (w *window[T]) at(n int64) *T {
	s := &w[((n%int64(slots))+int64(slots))%int64(slots)]
	if s.number != n {
		s.number, s.value = n, *new(T)
	}
	return &s.value
}

// live yields the values in the window.
func (w *window[T]) live(now int64) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range w {
			if live(w[i].number, now) && !yield(&w[i].value) {
				return
			}
		}
	}
}

// client has the counts of one client.
type client struct {
	slots      window[Counts]
	kinds      [2]*kindRecord // nil: no request of that kind
	triedSince time.Time
	users      map[string]*user // some of the users with denials
}

// New returns an empty recorder for at most maxClients clients. A value below 1 means
// [DefaultMaxClients]. Its reports begin at now.
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

// number returns the number of the slot that contains the time.
func number(now time.Time) int64 { return now.UnixMilli() / slot.Milliseconds() }

// live reports whether a slot is still in the window.
func live(number, now int64) bool { return number > now-int64(slots) && number <= now }

// Record counts one request. If there is no room for its client, Record drops a client with few
// requests, and reports are marked as incomplete.
func (r *Recorder) Record(now time.Time, o Observation) {
	s, n := r.shard(o.ClientID), number(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.client(o.ClientID, n)
	if o.Tried != ratelimit.Passed && !o.TriedSince.Equal(c.triedSince) {
		c.forgetTrial(o.TriedSince)
	}
	c.slots.at(n).add(&o)
	s.recordDenied(c, n, &o)
	if o.Decision.Counted() {
		c.kind(o.Kind).record(now, n, o.Decision)
	}
}

// Shed counts one request that was refused because the server is overloaded, or would have been in
// dry-run. It makes room for clients like [Recorder.Record]. A request without a client is not
// counted.
func (r *Recorder) Shed(now time.Time, clientID string, dryRun bool) {
	if clientID == "" {
		return
	}
	s, n := r.shard(clientID), number(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.client(clientID, n)
	if dryRun {
		c.slots.at(n).WouldShed++
	} else {
		c.slots.at(n).Shed++
	}
}

// Issuance is the issue of one access token.
type Issuance struct {
	ClientID string
	Wasted   bool // an equal token had more than half of its life left
	Refresh  bool // in exchange for a refresh token
}

// RecordIssued counts one token. It makes room for clients like [Recorder.Record].
func (r *Recorder) RecordIssued(now time.Time, i Issuance) {
	s, n := r.shard(i.ClientID), number(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.client(i.ClientID, n)
	at := c.slots.at(n)
	at.Issued++
	if i.Wasted {
		at.Wasted++
		if i.Refresh {
			at.EarlyRefreshes++
		}
	}
}

// shard returns the shard of the client.
func (r *Recorder) shard(clientID string) *shard {
	return &r.shards[maphash.String(r.seed, clientID)%shards]
}

// client returns the client with that ID, and adds it if necessary.
func (s *shard) client(id string, now int64) *client {
	c := s.clients[id]
	if c == nil {
		c = s.admit(id, now)
	}
	return c
}

// admit adds a client. If there is no room, it first removes clients without a request in the
// window, or else one with few requests. Anyone can send names to a gateway, and these must not
// displace clients in use.
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

// sampled is how many clients evict compares.
const sampled = 8

// evict removes the client with the fewest requests in a sample, and returns its cleared memory.
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

// requests returns the number of requests in the window.
func (c *client) requests(now int64) (n uint64) {
	for counts := range c.slots.live(now) {
		n += counts.Total() + counts.Shed
	}
	return n
}

func (c *client) seen(now int64) bool {
	for range c.slots.live(now) {
		return true
	}
	return false
}

// forgetTrial drops the counts of an earlier candidate.
func (c *client) forgetTrial(since time.Time) {
	c.triedSince = since
	for i := range c.slots {
		c.slots[i].value.CandidateCounts = CandidateCounts{}
	}
	for _, u := range c.users {
		for i := range u.slots {
			u.slots[i].value[2] = 0
		}
	}
}

func (c *Counts) add(o *Observation) {
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
