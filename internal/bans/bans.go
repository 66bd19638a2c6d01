package bans

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"oauth-server/internal/cowmap"
	"oauth-server/internal/ratelimit"
)

// Options make [Bans]. Counters are required; Find and Lift need a Store too.
type Options struct {
	Store    Store               // nil: the bans are those of this process alone, as in dry-run
	Counters *ratelimit.Counters // that denied requests are counted in
	Clock    func() time.Time    // of the counters and bans: time.Now
	// Policy returns what applies to a client now, by which Stats knows the bans that are enforced. Nil: all are.
	Policy func(clientID string) *ratelimit.Effective
	// Began is called with each ban that this instance was the first to store, and with each that would
	// have begun in dry-run. It must not block. Nil: not called.
	Began func(b Ban, m ratelimit.Mode)
}

// Bans has all bans in memory. It is safe for concurrent use.
type Bans struct {
	o        Options
	enforced table
	dryRun   table
	tried    table // of candidates

	mu      sync.Mutex          // held while a table is changed, and for the fields below
	waiting map[string]struct{} // keys of bans that are not stored yet
	refused int                 // keys that were not banned for lack of room since the last Refresh

	wake chan struct{} // has a value if a ban is waiting

	following sync.Mutex // held while changes are read; guards the fields below
	clock     time.Time  // of the store, at readAt
	readAt    time.Time  // by this machine, whose monotonic clock counts
	followed  time.Time  // when the last read began, as readAt
	allAt     time.Time  // when all are read again
}

// table has the bans of one mode by key. They are read without a lock.
type table struct {
	all atomic.Pointer[cowmap.Map[Ban]]
}

func (t *table) load() cowmap.Map[Ban] { return *t.all.Load() }

func (t *table) get(k ratelimit.Key) Ban { return scope{table: t}.get(k) }

// edit changes the table. The mutex of the bans must be held.
func (t *table) edit(change func(e *cowmap.Edit[Ban])) {
	e := t.load().Edit()
	change(e)
	m := e.Map()
	t.all.Store(&m)
}

// name is a key as one text: no client_id has a space.
func name(k ratelimit.Key) string { return k.ClientID + " " + k.Username }

// New reads the bans that are stored.
func New(ctx context.Context, o Options) (*Bans, error) {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Began == nil {
		o.Began = func(Ban, ratelimit.Mode) {}
	}
	b := &Bans{o: o, waiting: map[string]struct{}{}, wake: make(chan struct{}, 1)}
	b.enforced.all.Store(&cowmap.Map[Ban]{})
	b.dryRun.all.Store(&cowmap.Map[Ban]{})
	b.tried.all.Store(&cowmap.Map[Ban]{})
	if err := b.follow(ctx); err != nil {
		return nil, err
	}
	return b, nil
}

// Enforces reports whether a policy keeps out who has a ban of a mode, or would in dry-run: a ban outlives a change of
// the policy.
func Enforces(e *ratelimit.Effective, m ratelimit.Mode) bool {
	return e.Bans() != nil && (e.Mode == ratelimit.DryRun) == (m == ratelimit.DryRun)
}

// Decide returns the decision on a request of a key that is banned, or would be in dry-run; false: it is not.
func (b *Bans) Decide(now time.Time, k ratelimit.Key, e *ratelimit.Effective) (d ratelimit.Decision, banned bool) {
	if e.Bans() == nil {
		return d, false
	}
	ban := b.scopeOf(e.Mode).get(k.Bounded())
	if !ban.Active(now) {
		return d, false
	}
	return ratelimit.ByBan(ban.Until.Sub(now), e.Mode), true
}

// Denied counts a request that was denied by a limit, or would have been in dry-run, of a key that is not
// banned. It bans the key if that was one too many.
func (b *Bans) Denied(now time.Time, k ratelimit.Key, e *ratelimit.Effective) {
	in := b.scopeOf(e.Mode)
	if ban, began := b.denied(now, k, e, in); began && !b.stores(in) {
		b.o.Began(ban, e.Mode)
	}
}

// stores reports whether bans of the scope are stored.
func (b *Bans) stores(in scope) bool { return in.table == &b.enforced && b.o.Store != nil }

// denied returns the ban, if it begins with the request.
func (b *Bans) denied(now time.Time, k ratelimit.Key, e *ratelimit.Effective, in scope) (ban Ban, began bool) {
	rule := e.Bans()
	if rule == nil {
		return ban, false
	}
	k = k.Bounded()
	last := in.get(k)
	if last.Active(now) { // since a moment ago
		return ban, false
	}
	d := b.o.Counters.Take(now, in.countKey(k, last.Since), rule.Counts, 1)
	left, _ := d.BindingLimit()
	if left.Remaining > 0 || d.Rejected() && !d.Exceeded() { // not counted, for lack of room
		return ban, false
	}
	return b.begin(now, k, in, rule)
}

// begin bans the key, unless another request has a moment ago.
func (b *Bans) begin(now time.Time, k ratelimit.Key, in scope, rule *ratelimit.BanRule) (next Ban, began bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	last, at := in.get(k), in.name(k)
	if last.Active(now) {
		return next, false
	}
	if in.table.isFull(at) {
		b.refused++
		return next, false
	}
	next = last.next(now, k, rule)
	if b.stores(in) {
		b.waiting[at] = struct{}{}
		select {
		case b.wake <- struct{}{}:
		default: // it is awake
		}
	}
	in.table.edit(func(e *cowmap.Edit[Ban]) { e.Set(at, next) })
	return next, true
}

// isFull reports whether there is no room for a ban of that name.
func (t *table) isFull(name string) bool {
	m := t.load()
	_, there := m.Get(name)
	return !there && m.Len() >= Max
}

// Stats are figures of the bans.
type Stats struct {
	Active  int           // in force, and enforced by the policy
	Longest time.Duration // the whole length of the longest of these
	Waiting int           // not stored yet
}

// Stats returns the figures as of now.
func (b *Bans) Stats() (s Stats) {
	now := b.o.Clock()
	for _, ban := range b.enforced.load().All() {
		if ban.Active(now) && (b.o.Policy == nil || Enforces(b.o.Policy(ban.ClientID), ratelimit.Enforce)) {
			s.Active++
			s.Longest = max(s.Longest, ban.Until.Sub(ban.Since))
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s.Waiting = len(b.waiting)
	return s
}

// All returns the table of a mode, by the client_id and the username with a space between: in dry-run, of this
// instance. Some bans may have ended.
func (b *Bans) All(m ratelimit.Mode) cowmap.Map[Ban] { return b.scopeOf(m).table.load() }
