package bans

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

// Options configure [Bans]. Counters are required. Find and Lift also need a Store.
type Options struct {
	Store    Store              // nil: bans apply to this process alone, as in dry-run
	Counters *counting.Counters // count denied requests
	Clock    func() time.Time   // clock of the counters and bans; nil: time.Now
	// Policy returns the present limits of a client. Stats uses it to count only enforced bans.
	// Nil: all bans count.
	Policy func(clientID string) *ratelimit.Effective
	// Began is called with each ban that this instance was the first to store, and with each ban
	// that would have begun in dry-run. It must not block. Nil: not called.
	Began func(b Ban, m ratelimit.Mode)
}

// Bans has all bans in memory. It is safe for concurrent use.
type Bans struct {
	o        Options
	enforced table
	dryRun   table
	tried    table // bans of candidates

	mu      sync.Mutex          // held while a table is changed; guards the fields below
	waiting map[string]struct{} // keys with bans that are not stored yet
	refused int                 // keys that were not banned for lack of room since the last Refresh

	wake chan struct{} // has a value if a ban is waiting

	following *semaphore.Weighted // one; held while changes are read; guards the fields below
	clock     time.Time           // clock of the store, at readAt
	readAt    time.Time           // on this machine, with a monotonic reading
	followed  time.Time           // when the last read began, on this machine
	allAt     time.Time           // when all bans are read again
}

// table has the bans of one mode by key. Reading it takes no lock.
type table struct {
	all atomic.Pointer[ratelimit.Map[Ban]]
}

func (t *table) load() ratelimit.Map[Ban] { return *t.all.Load() }

func (t *table) get(k ratelimit.Key) Ban { return scope{table: t}.get(k) }

// edit changes the table. The mutex of the bans must be held.
func (t *table) edit(change func(e *ratelimit.MapEdit[Ban])) {
	e := t.load().Edit()
	change(e)
	m := e.Map()
	t.all.Store(&m)
}

// name returns a key as one string. No client_id contains a space.
func name(k ratelimit.Key) string { return k.ClientID + " " + k.Username }

// New returns Bans with the stored bans.
func New(ctx context.Context, o Options) (*Bans, error) {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Began == nil {
		o.Began = func(Ban, ratelimit.Mode) {}
	}
	b := &Bans{o: o, waiting: map[string]struct{}{}, wake: make(chan struct{}, 1), following: semaphore.NewWeighted(1)}
	b.enforced.all.Store(&ratelimit.Map[Ban]{})
	b.dryRun.all.Store(&ratelimit.Map[Ban]{})
	b.tried.all.Store(&ratelimit.Map[Ban]{})
	if err := b.follow(ctx); err != nil {
		return nil, err
	}
	return b, nil
}

// Enforces reports whether a policy applies the bans of a mode: Enforce, or DryRun for its
// predictions. A ban outlives a change of the policy, so it may have no effect.
func Enforces(e *ratelimit.Effective, m ratelimit.Mode) bool {
	return e.Bans() != nil && (e.Mode == ratelimit.DryRun) == (m == ratelimit.DryRun)
}

// Decide returns the decision on a request of a banned key, also in dry-run. It returns false if
// the key is not banned.
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

// Denied counts a request that a limit denied, or would have denied in dry-run. Its key must not be
// banned. Denied bans the key if the count reaches the bound of its rule.
func (b *Bans) Denied(now time.Time, k ratelimit.Key, e *ratelimit.Effective) {
	in := b.scopeOf(e.Mode)
	if ban, began := b.denied(now, k, e, in); began && !b.stores(in) {
		b.o.Began(ban, e.Mode)
	}
}

// stores reports whether bans of the scope are stored.
func (b *Bans) stores(in scope) bool { return in.table == &b.enforced && b.o.Store != nil }

// denied counts the request. If a ban begins with it, denied returns the ban.
func (b *Bans) denied(now time.Time, k ratelimit.Key, e *ratelimit.Effective, in scope) (ban Ban, began bool) {
	rule := e.Bans()
	if rule == nil {
		return ban, false
	}
	k = k.Bounded()
	last := in.get(k)
	if last.Active(now) { // another request has just started a ban
		return ban, false
	}
	d := b.o.Counters.Take(now, in.countKey(k, last.Since), rule.Counts, 1)
	left, _ := d.BindingLimit()
	if left.Remaining > 0 || d.Rejected() && !d.Exceeded() { // not counted, for lack of room
		return ban, false
	}
	return b.begin(now, k, in, rule)
}

// begin bans the key, unless another request has just done so.
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
		default: // already woken
		}
	}
	in.table.edit(func(e *ratelimit.MapEdit[Ban]) { e.Set(at, next) })
	return next, true
}

// isFull reports whether the table has no room for a ban with this name.
func (t *table) isFull(name string) bool {
	m := t.load()
	_, there := m.Get(name)
	return !there && m.Len() >= Max
}

// Stats are statistics of the bans.
type Stats struct {
	Active  int           // in force and enforced by the policy
	Longest time.Duration // full length of the longest active ban
	Waiting int           // not stored yet
}

// Stats returns the present statistics.
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

// All returns the bans of a mode. The map key is client_id, a space and the username. Bans in
// dry-run are those of this instance alone. Some bans may have ended.
func (b *Bans) All(m ratelimit.Mode) ratelimit.Map[Ban] { return b.scopeOf(m).table.load() }
