package simulate

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/limiter/recent"
	"oauth-server/internal/simulate/traffic"
)

// stats has the outcomes of the requests, by client. Its memory grows only with the number of
// clients.
type stats struct {
	clients     map[string]*client
	trackable   int // for this many further clients a series is kept
	series      *series
	users       users
	blocked     blocked
	issued      *recent.Table // issued tokens
	first, last time.Time

	failing    int    // clients with only failed requests so far
	failedMore uint64 // requests of further such clients

	withoutSource, withoutUser, unknown uint64
	warnings                            []string
}

// client has the outcomes of one client. There may be many clients, so data that most do not need
// is in trouble.
type client struct {
	id                                 string
	requests, admitted, failed, wasted uint64
	minute                             int64 // of the latest request, since 1970
	inMinute                           uint32
	trouble                            *trouble // nil: all of its requests were admitted at once, or failed
	series                             *series  // nil: not kept
}

// trouble has the data of a client with requests that were not admitted at once.
type trouble struct {
	denied, delayed, reused, banned uint64
	refusedInMinute                 uint32
	worst                           minute
	longestBlocked, longestWait     time.Duration
	blocked                         int    // keys that are blocked
	users                           uint64 // hit users, at the end
	hash                            uint64 // of the client
}

type minute struct {
	at                int64
	requests, refused uint32
}

// Bounds of the data kept per client.
const (
	maxSeries     = 2000 // clients with a series
	lateSeries    = 500  // … of these, reserved for clients with refusals after the others are used up
	clientBuckets = 360
	issuedSlots   = 1 << 20 // 8 MB
	maxUsersHit   = 1 << 20
	maxFailing    = 10_000 // clients with only failed requests: a scan can make up any number of them
)

func newStats(o *Options) *stats {
	s := &stats{clients: map[string]*client{}, series: newSeries(MaxBuckets), users: newUsers(maxUsersHit), blocked: blocked{}}
	if !o.brief {
		s.trackable = maxSeries
	}
	return s
}

// warn adds a note about the result for the reader, once.
func (s *stats) warn(text string) {
	if !slices.Contains(s.warnings, text) {
		s.warnings = append(s.warnings, text)
	}
}

// see records the time of a request.
func (s *stats) see(r *traffic.Request) {
	if s.first.IsZero() {
		s.first, s.issued = r.At, recent.New(r.At, issuedSlots)
	}
	s.last = r.At
}

// client returns the client with that ID. It creates a missing one.
func (s *stats) client(id string) *client {
	c := s.clients[id]
	if c == nil {
		c = &client{id: strings.Clone(id)}
		s.clients[c.id] = c
	}
	return c
}

// fail counts a failed request. Anyone can send such requests, with any client ID.
func (s *stats) fail(r *traffic.Request) {
	s.see(r)
	if s.clients[r.Client] == nil {
		if s.failing == maxFailing {
			s.failedMore++
			return
		}
		s.failing++
	}
	s.client(r.Client).failed++
}

// arrive counts an arriving request.
func (s *stats) arrive(r *traffic.Request) *client {
	s.see(r)
	c := s.client(r.Client)
	if c.requests == 0 {
		if c.failed > 0 {
			s.failing--
		}
		if s.trackable > lateSeries {
			s.trackable--
			c.series = newSeries(clientBuckets)
		}
	}
	c.requests++
	if at := r.At.Unix() / 60; at != c.minute {
		c.minute, c.inMinute = at, 0
		if c.trouble != nil {
			c.trouble.refusedInMinute = 0
		}
	}
	c.inMinute++
	if c.trouble != nil && c.trouble.worst.at == c.minute {
		c.trouble.worst.requests = c.inMinute
	}
	if r.Unknown {
		s.unknown++
	} else if r.User == "" && r.Grant != "" && r.Grant != clientCredentials {
		s.withoutUser++
	}
	return c
}

// record records the outcome of a request at now.
func (s *stats) record(t *ticket, a traffic.Answer, now time.Time) {
	c := t.client
	s.series.add(t.r.At, a.Outcome)
	if a.Outcome == traffic.Admitted {
		c.admitted++
	} else {
		s.recordTrouble(t, a, now)
	}
	if c.series != nil {
		c.series.add(t.r.At, a.Outcome)
	}
	if c.trouble != nil && c.trouble.blocked > 0 && !a.Refused() {
		s.blocked.pass(s.keyHash(t), now)
	}
}

func (s *stats) recordTrouble(t *ticket, a traffic.Answer, now time.Time) {
	c := t.client
	if c.trouble == nil {
		c.trouble = &trouble{hash: maphash.String(seed, c.id)}
		if c.series == nil && s.trackable > 0 {
			s.trackable--
			c.series = newSeries(clientBuckets)
		}
	}
	x := c.trouble
	switch a.Outcome {
	case traffic.Delayed:
		x.delayed++
		return
	case traffic.Reused:
		x.reused++
		return
	case traffic.Banned:
		x.banned++
	default:
		x.denied++
	}
	hash := s.keyHash(t)
	x.longestWait = max(x.longestWait, a.RetryAfter)
	s.blocked.refuse(c, hash, now, a.RetryAfter)
	if t.key.Username != "" {
		s.users.add(hash, c)
	}
	if t.r.At.Unix()/60 == c.minute {
		if x.refusedInMinute++; x.refusedInMinute > x.worst.refused {
			x.worst.at, x.worst.refused = c.minute, x.refusedInMinute
		}
	}
	if x.worst.at == c.minute {
		x.worst.requests = c.inMinute
	}
}

// keyHash identifies the key of a request of a client in trouble. For a million keys, the
// probability that two of them collide is 1 in 37 million.
func (s *stats) keyHash(t *ticket) uint64 {
	return recent.Mix(t.client.trouble.hash, maphash.String(seed, t.key.Username))
}

// issue records an issued token. For unknown users it is not known which tokens are equal.
func (s *stats) issue(t *ticket, now time.Time, life time.Duration) {
	if t.r.Unknown {
		return
	}
	h := recent.Mix(maphash.String(seed, t.r.Client), maphash.String(seed, t.key.Username))
	if t.r.Scope != "" {
		h = recent.Mix(h, scopesOf(t.r.Scope))
	}
	if s.issued.Renew(now, h, life/2) {
		t.client.wasted++
	}
}

// sweep drops data that can no longer change.
func (s *stats) sweep(now time.Time) { s.blocked.sweep(now) }

// finish completes the figures that are known only at the end.
func (s *stats) finish() {
	s.blocked.finish()
	for c, n := range s.users.byClient() {
		c.trouble.users = n
	}
}

// notes returns remarks on the result for the reader.
func (s *stats) notes() []string {
	all := s.warnings
	if s.withoutSource > 0 {
		all = append(all, counted(s.withoutSource, "request has no address and is not counted per source",
			"requests have no address and are not counted per source"))
	}
	if s.withoutUser > 0 {
		all = append(all, counted(s.withoutUser, "user request has no user and is counted for the client itself",
			"user requests have no user and are counted for the client itself"))
	}
	if s.unknown > 0 {
		all = append(all, counted(s.unknown, "request is for an unknown user and is counted only in totals and per source",
			"requests are for unknown users and are counted only in totals and per source"))
	}
	if s.failedMore > 0 {
		all = append(all, fmt.Sprintf("%d failed requests are only in the total: more than %d clients sent only failed requests", s.failedMore, maxFailing))
	}
	return all
}

// counted returns a sentence about one or many.
func counted(n uint64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// total returns the sum over all clients.
func (s *stats) total() Counts {
	sum := Counts{Failed: s.failedMore}
	for _, c := range s.clients {
		sum.add(c.counts())
	}
	return sum
}

func (c *client) counts() Counts {
	n := Counts{Requests: c.requests, Admitted: c.admitted, Failed: c.failed, Wasted: c.wasted}
	if x := c.trouble; x != nil {
		n.Denied, n.Delayed, n.Reused, n.Banned = x.denied, x.delayed, x.reused, x.banned
	}
	return n
}

// refused returns how many requests of the client were refused.
func (c *client) refused() uint64 {
	if c.trouble == nil {
		return 0
	}
	return c.trouble.denied + c.trouble.banned
}
