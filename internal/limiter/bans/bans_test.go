package bans_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/limiter/bans"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

var ada = ratelimit.Key{ClientID: "shop", Username: "ada"}

// rule bans for a minute after 3 denials in 10 seconds. Each further ban is twice as long, up to 5
// minutes. A ban is forgotten an hour after its end.
func rule(t *testing.T, edits ...func(*ratelimit.Settings)) *ratelimit.Effective {
	t.Helper()
	s := ratelimit.DefaultSettings()
	s.Default.Ban = &ratelimit.Ban{
		Denials: 3, Within: 10 * time.Second, For: time.Minute, Factor: 2, Max: 5 * time.Minute, Forget: time.Hour,
	}
	for _, edit := range edits {
		edit(&s)
	}
	p, err := ratelimit.Compile(s)
	check.OK(t, err)
	return p.For("shop")
}

func inDryRun(s *ratelimit.Settings) { s.Mode = ratelimit.DryRun }

// world is several instances on one store, and a clock.
type world struct {
	t     *testing.T
	store *flaky
	file  *testworld.Store
	clock *testworld.Clock
	began []string // by all instances
}

// flaky is a store that can fail, before or after it has stored a ban.
type flaky struct {
	bans.Store
	mu           sync.Mutex
	fails, loses bool
	puts         int
}

var errAway = errors.New("away")

func (f *flaky) PutBan(ctx context.Context, b bans.Ban) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fails {
		return errAway
	}
	f.puts++
	err := f.Store.PutBan(ctx, b)
	if f.loses {
		return errAway
	}
	return err
}

func newWorld(t *testing.T) *world {
	t.Helper()
	file := testworld.OpenStore(t, filepath.Join(t.TempDir(), "test.db"))
	return &world{t: t, store: &flaky{Store: bans.NewRepository(file)}, file: file, clock: &testworld.Clock{}}
}

// instance is a process.
type instance struct {
	*bans.Bans
	w *world
}

func (w *world) instance() *instance {
	w.t.Helper()
	b, err := bans.New(w.t.Context(), bans.Options{
		Store: w.store, Counters: counting.NewCounters(1000), Clock: w.clock.Now,
		Began: func(b bans.Ban, m ratelimit.Mode) {
			w.began = append(w.began, fmt.Sprintf("%s %s %v %s", b.ClientID, b.Username, b.Until.Sub(b.Since), m))
		},
	})
	check.OK(w.t, err)
	return &instance{b, w}
}

func (i *instance) deny(n int, k ratelimit.Key, e *ratelimit.Effective) {
	for range n {
		i.Denied(i.w.clock.Now(), k, e)
	}
}

// rest returns how long the key is still banned, or 0.
func (i *instance) rest(k ratelimit.Key, e *ratelimit.Effective) time.Duration {
	i.w.t.Helper()
	d, banned := i.Decide(i.w.clock.Now(), k, e)
	if banned != (d.RetryAfter > 0) || banned != d.Rejected() {
		i.w.t.Errorf("banned %v with the decision %v for %v", banned, d.Outcome, d.RetryAfter)
	}
	return d.RetryAfter
}

func (i *instance) refresh() {
	i.w.t.Helper()
	check.OK(i.w.t, i.Refresh(i.w.t.Context()))
}

// TestBan: a ban begins with the last of the denials, applies to one key, and ends after its time.
func TestBan(t *testing.T) {
	w, e := newWorld(t), rule(t)
	a := w.instance()
	a.deny(2, ada, e)
	check.Equal(t, "after 2 denials", a.rest(ada, e), time.Duration(0))
	a.deny(1, ada, e)
	check.Equal(t, "after 3 denials", a.rest(ada, e), time.Minute)
	for _, k := range []ratelimit.Key{{ClientID: "shop"}, {ClientID: "shop", Username: "bob"}, {ClientID: "other", Username: "ada"}} {
		check.Equal(t, "another key", a.rest(k, e), time.Duration(0))
	}
	w.clock.Advance(59999 * time.Millisecond)
	check.Equal(t, "a millisecond before the end", a.rest(ada, e), time.Millisecond)
	w.clock.Advance(time.Millisecond)
	check.Equal(t, "at the end", a.rest(ada, e), time.Duration(0))
}

// TestDenialsAreForgotten: widely spaced denials cause no ban.
func TestDenialsAreForgotten(t *testing.T) {
	w, e := newWorld(t), rule(t)
	a := w.instance()
	for range 20 {
		a.deny(1, ada, e)
		w.clock.Advance(6 * time.Second)
	}
	check.Equal(t, "rest", a.rest(ada, e), time.Duration(0))
}

// TestNextBanIsLonger: up to the maximum. After a ban is forgotten, the next one counts as the
// first. Denials are counted from zero after each ban (as in Cloud Armor), and denials during a ban
// do not count.
func TestNextBanIsLonger(t *testing.T) {
	w, e := newWorld(t), rule(t)
	a := w.instance()
	for i, want := range []time.Duration{1, 2, 4, 5, 5} {
		a.deny(2, ada, e)
		check.Equal(t, "2 denials after a ban", a.rest(ada, e), time.Duration(0))
		a.deny(1, ada, e)
		check.Equal(t, fmt.Sprint("ban ", i), a.rest(ada, e), want*time.Minute)
		a.deny(10, ada, e)
		a.refresh()
		w.clock.Advance(want * time.Minute)
	}
	w.clock.Advance(time.Hour - time.Millisecond)
	a.deny(3, ada, e)
	check.Equal(t, "just before it is forgotten", a.rest(ada, e), 5*time.Minute)
	w.clock.Advance(5*time.Minute + time.Hour)
	a.deny(3, ada, e)
	check.Equal(t, "forgotten", a.rest(ada, e), time.Minute)
}

// TestOnlyWhoCanBeBanned: bans never apply to trusted clients or to clients without a ban rule or
// without limits, even if they were banned before.
func TestOnlyWhoCanBeBanned(t *testing.T) {
	w, e := newWorld(t), rule(t)
	a := w.instance()
	without := map[string]*ratelimit.Effective{
		"trusted": rule(t, func(s *ratelimit.Settings) { s.Clients = map[string]ratelimit.Policy{"shop": {Trusted: true}} }),
		"no ban":  rule(t, func(s *ratelimit.Settings) { s.Default.Ban = nil }),
		"ban off": rule(t, func(s *ratelimit.Settings) {
			s.Clients = map[string]ratelimit.Policy{"shop": {Ban: &ratelimit.Ban{Off: true}}}
		}),
		"off": rule(t, func(s *ratelimit.Settings) { s.Mode = ratelimit.Off }),
	}
	for name, other := range without {
		a.deny(10, ada, other)
		check.Equal(t, name, a.rest(ada, e), time.Duration(0))
	}
	a.deny(3, ada, e)
	for name, other := range without {
		check.Equal(t, name, a.rest(ada, other), time.Duration(0))
	}
	check.Equal(t, "rest", a.rest(ada, e), time.Minute)
}

// TestDryRun: it shows which keys would be banned and for how long, and stores nothing.
func TestDryRun(t *testing.T) {
	w, dry, live := newWorld(t), rule(t, inDryRun), rule(t)
	a := w.instance()
	for range 2 {
		a.deny(3, ada, dry)
		d, banned := a.Decide(w.clock.Now(), ada, dry)
		check.Equal(t, "banned", banned, true)
		check.Equal(t, "outcome", d.Outcome, ratelimit.WouldBan)
		check.Equal(t, "rejected", d.Rejected(), false)
		check.Equal(t, "enforced", a.rest(ada, live), time.Duration(0))
		w.clock.Advance(2 * time.Minute)
	}
	a.refresh()
	check.Equal(t, "stored", w.store.puts, 0)
	check.Equal(t, "began", fmt.Sprint(w.began), "[shop ada 1m0s dry_run shop ada 2m0s dry_run]")
	found, there := a.FindDryRun(ada)
	check.Equal(t, "found", there && found.Level == 1, true)
	a.LiftDryRun(ada)
	_, there = a.FindDryRun(ada)
	check.Equal(t, "found again", there, false)
	a.deny(3, ada, live)
	check.Equal(t, "enforced", a.rest(ada, live), time.Minute)
}

// TestEveryInstanceFollows: other instances see new and lifted bans after their next refresh. A new
// instance sees them at once.
func TestEveryInstanceFollows(t *testing.T) {
	w, e := newWorld(t), rule(t)
	a, b := w.instance(), w.instance()
	a.deny(3, ada, e)
	a.refresh()
	b.refresh()
	check.Equal(t, "at the other one", b.rest(ada, e), time.Minute)
	check.Equal(t, "after a start", w.instance().rest(ada, e), time.Minute)
	w.clock.Advance(time.Minute)
	b.deny(3, ada, e)
	b.refresh()
	a.refresh()
	check.Equal(t, "banned by the other one", a.rest(ada, e), 2*time.Minute)
	_, _, err := a.Lift(t.Context(), ada, false)
	check.OK(t, err)
	check.Equal(t, "lifted", a.rest(ada, e), time.Duration(0))
	b.refresh()
	check.Equal(t, "lifted at the other one", b.rest(ada, e), time.Duration(0))
	b.deny(3, ada, e)
	check.Equal(t, "after it was lifted", b.rest(ada, e), 4*time.Minute)
	check.Equal(t, "began", fmt.Sprint(w.began), "[shop ada 1m0s enforce shop ada 2m0s enforce]")
}

// TestBansAtOnceAreOne: if several instances ban a key at the same time, one stores its ban and the
// level rises by one.
func TestBansAtOnceAreOne(t *testing.T) {
	w, e := newWorld(t), rule(t)
	a, b := w.instance(), w.instance()
	for i, want := range []time.Duration{1, 2, 4} {
		a.deny(3, ada, e)
		w.clock.Advance(time.Second)
		b.deny(3, ada, e)
		a.refresh()
		b.refresh()
		a.refresh()
		check.Equal(t, fmt.Sprint("ban ", i), a.rest(ada, e), want*time.Minute-time.Second)
		check.Equal(t, fmt.Sprint("ban ", i, " at the other one"), b.rest(ada, e), want*time.Minute-time.Second)
		w.clock.Advance(want * time.Minute)
	}
	check.Equal(t, "began", len(w.began), 3)
	stats := a.Stats()
	check.Equal(t, "stats", stats, bans.Stats{})
}

// TestStoreAway: without the store an instance still bans, and it stores the ban later. If the
// reply to a write was lost, the instance recognizes the stored ban as its own.
func TestStoreAway(t *testing.T) {
	w, e := newWorld(t), rule(t)
	a, b := w.instance(), w.instance()
	w.store.fails = true
	a.deny(3, ada, e)
	check.ErrorIs(t, a.Refresh(t.Context()), errAway)
	check.Equal(t, "meanwhile", a.rest(ada, e), time.Minute)
	check.Equal(t, "stats", a.Stats(), bans.Stats{Active: 1, Longest: time.Minute, Waiting: 1})
	_, _, err := a.Lift(t.Context(), ada, false)
	check.ErrorIs(t, err, errAway)
	w.store.fails, w.store.loses = false, true
	check.ErrorIs(t, a.Refresh(t.Context()), errAway)
	w.store.loses = false
	w.clock.Advance(time.Second)
	a.refresh()
	b.refresh()
	check.Equal(t, "at the other one", b.rest(ada, e), 59*time.Second)
	check.Equal(t, "began", len(w.began), 1)
	check.Equal(t, "stats", a.Stats(), bans.Stats{Active: 1, Longest: time.Minute})
}

// TestLift: it ends an active ban, and with forget also clears an ended one. Other keys are not
// affected.
func TestLift(t *testing.T) {
	w, e := newWorld(t), rule(t)
	a, ctx := w.instance(), t.Context()
	_, _, err := a.Lift(ctx, ada, true)
	check.ErrorIs(t, err, bans.ErrNotFound)
	a.deny(3, ada, e)
	before, after, err := a.Lift(ctx, ada, false) // it was not stored before
	check.OK(t, err)
	check.Equal(t, "active before", before.Active(w.clock.Now()), true)
	check.Equal(t, "active after", after.Active(w.clock.Now()), false)
	_, _, err = a.Lift(ctx, ada, false)
	check.ErrorIs(t, err, bans.ErrNotFound)
	_, _, err = a.Lift(ctx, ada, true)
	check.OK(t, err)
	a.deny(3, ada, e)
	check.Equal(t, "after it was forgotten", a.rest(ada, e), time.Minute)
}

// TestForgottenBansLeaveMemory: they also leave the store. Lifted bans stay until all instances
// have seen them.
func TestForgottenBansLeaveMemory(t *testing.T) {
	w, e := newWorld(t), rule(t)
	a := w.instance()
	a.deny(3, ada, e)
	a.refresh()
	a.deny(3, ratelimit.Key{ClientID: "shop"}, e)
	_, _, err := a.Lift(t.Context(), ratelimit.Key{ClientID: "shop"}, true)
	check.OK(t, err)
	left := func() int { return a.All(ratelimit.Enforce).Len() }
	w.clock.Advance(9 * time.Minute)
	a.refresh()
	check.Equal(t, "after 9 minutes", left(), 2)
	w.clock.Advance(7 * time.Minute)
	a.refresh()
	check.Equal(t, "after 16 minutes", left(), 1)
	w.clock.Advance(time.Hour)
	a.refresh()
	check.Equal(t, "after an hour", left(), 0)
}

// TestConcurrentDenials: exactly one ban begins, whichever request comes last.
func TestConcurrentDenials(t *testing.T) {
	w, e := newWorld(t), rule(t)
	a := w.instance()
	for i := range 20 {
		k := ratelimit.Key{ClientID: "shop", Username: fmt.Sprint(i)}
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range 16 {
			wg.Go(func() { <-start; a.deny(3, k, e) })
		}
		close(start)
		wg.Wait()
		check.Equal(t, "rest", a.rest(k, e), time.Minute)
	}
	a.refresh()
	check.Equal(t, "began", len(w.began), 20)
}

// TestLongNames: bans work for names that are counted under digests.
func TestLongNames(t *testing.T) {
	w, e := newWorld(t), rule(t)
	a := w.instance()
	long := ratelimit.Key{ClientID: "shop", Username: string(make([]byte, 300))}
	a.deny(3, long, e)
	check.Equal(t, "rest", a.rest(long, e), time.Minute)
	_, _, err := a.Lift(t.Context(), long, false)
	check.OK(t, err)
}

// TestRun: a ban is stored at once.
func TestRun(t *testing.T) {
	w, e := newWorld(t), rule(t)
	stored := make(chan struct{}, 1)
	w.store.Store = notifying{w.store.Store, stored}
	a := w.instance()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- a.Run(ctx) }()
	a.deny(3, ada, e)
	<-stored
	cancel()
	check.OK(t, <-ended)
}

type notifying struct {
	bans.Store
	stored chan struct{}
}

func (n notifying) PutBan(ctx context.Context, b bans.Ban) error {
	defer func() { n.stored <- struct{}{} }()
	return n.Store.PutBan(ctx, b)
}

// TestWithoutStore: the bans work the same, but apply to this process alone and are lost when it
// ends.
func TestWithoutStore(t *testing.T) {
	e, clock := rule(t), &testworld.Clock{}
	var began []string
	b, err := bans.New(t.Context(), bans.Options{
		Counters: counting.NewCounters(1000), Clock: clock.Now,
		Began: func(b bans.Ban, m ratelimit.Mode) { began = append(began, fmt.Sprint(b.Until.Sub(b.Since), " ", m)) },
	})
	check.OK(t, err)
	for range 2 {
		for range 3 {
			b.Denied(clock.Now(), ada, e)
		}
		_, banned := b.Decide(clock.Now(), ada, e)
		check.Equal(t, "banned", banned, true)
		check.OK(t, b.Refresh(t.Context()))
		clock.Advance(2 * time.Minute)
	}
	check.Equal(t, "began", fmt.Sprint(began), "[1m0s enforce 2m0s enforce]")
	check.Equal(t, "stats", b.Stats(), bans.Stats{})
	clock.Advance(2 * time.Hour)
	check.OK(t, b.Refresh(t.Context()))
	check.Equal(t, "in memory after it is forgotten", b.All(ratelimit.Enforce).Len(), 0)
}

// TestNoRoom: banned keys stay banned, no further keys are banned, and each refresh reports that
// once.
func TestNoRoom(t *testing.T) {
	w, e := newWorld(t), rule(t)
	many := make([]bans.Ban, bans.Max)
	for i := range many {
		k := ratelimit.Key{ClientID: "shop", Username: fmt.Sprint("user ", i)}
		many[i] = bans.Ban{Key: k, Version: 1, Since: w.clock.Now(), Until: w.clock.Now().Add(time.Minute), Forget: w.clock.Now().Add(time.Hour)}
	}
	w.store.Store = full{w.store.Store, many}
	a := w.instance()
	a.refresh()
	a.deny(3, ada, e)
	check.Equal(t, "rest", a.rest(ada, e), time.Duration(0))
	check.Equal(t, "rest of the others", a.rest(many[7].Key, e), time.Minute)
	check.ErrorSays(t, a.Refresh(t.Context()), "maximum of 100000 bans reached; banning no more")
	a.refresh()
	w.clock.Advance(time.Hour)
	w.store.Store = full{w.store.Store, nil}
	a.refresh()
	a.deny(3, ada, e)
	check.Equal(t, "rest when the others are forgotten", a.rest(ada, e), time.Minute)
}

// full is a store that contains many bans.
type full struct {
	bans.Store
	list []bans.Ban
}

func (f full) Bans(context.Context, time.Time) ([]bans.Ban, error) { return f.list, nil }

// TestStatsOfWhatIsEnforced: bans that have no effect under the present policies are not counted.
func TestStatsOfWhatIsEnforced(t *testing.T) {
	w, e := newWorld(t), rule(t)
	policies := map[string]*ratelimit.Effective{
		"shop": e, "dry": rule(t, inDryRun), "free": rule(t, func(s *ratelimit.Settings) { s.Default.Ban = nil }),
	}
	a, err := bans.New(t.Context(), bans.Options{
		Store: w.store, Counters: counting.NewCounters(1000), Clock: w.clock.Now,
		Policy: func(clientID string) *ratelimit.Effective { return policies[clientID] },
	})
	check.OK(t, err)
	for id := range policies {
		for range 3 {
			a.Denied(w.clock.Now(), ratelimit.Key{ClientID: id}, e)
		}
	}
	check.OK(t, a.Flush(t.Context()))
	check.Equal(t, "stats", a.Stats(), bans.Stats{Active: 1, Longest: time.Minute})
	check.Equal(t, "bans", a.All(ratelimit.Enforce).Len(), 3)
}
