package bans_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/limiter/bans"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

// seeing is a store that returns only the bans selected by a test.
type seeing struct {
	bans.Store
	show func(since time.Time) ([]bans.Ban, bool)
}

func (s seeing) Bans(ctx context.Context, since time.Time) ([]bans.Ban, error) {
	if list, instead := s.show(since); instead {
		return list, nil
	}
	return s.Store.Bans(ctx, since)
}

// TestOlderBanIsNotTakenOver: a read that started before a change does not undo it.
func TestOlderBanIsNotTakenOver(t *testing.T) {
	w, e := newWorld(t), rule(t)
	a := w.instance()
	a.deny(3, ada, e)
	a.refresh()
	old, err := w.store.Ban(t.Context(), ada)
	check.OK(t, err)
	_, _, err = a.Lift(t.Context(), ada, false)
	check.OK(t, err)
	w.store.Store = seeing{w.store.Store, func(time.Time) ([]bans.Ban, bool) { return []bans.Ban{old}, true }}
	a.refresh()
	check.Equal(t, "rest", a.rest(ada, e), time.Duration(0))
}

// TestAllAreReadNowAndThen: a full read finds bans that were missing in a read of changes.
func TestAllAreReadNowAndThen(t *testing.T) {
	w, e := newWorld(t), rule(t, func(s *ratelimit.Settings) { s.Default.Ban.For, s.Default.Ban.Max = time.Hour, time.Hour })
	a, b := w.instance(), w.instance()
	b.deny(3, ratelimit.Key{ClientID: "shop"}, e)
	b.refresh()
	a.refresh() // it has a position to read from
	b.deny(3, ada, e)
	b.refresh()
	w.store.Store = seeing{w.store.Store, func(since time.Time) ([]bans.Ban, bool) { return nil, !since.IsZero() }}
	a.refresh()
	check.Equal(t, "rest", a.rest(ada, e), time.Duration(0))
	w.clock.Advance(6 * time.Minute)
	a.refresh()
	check.Equal(t, "rest after six minutes", a.rest(ada, e), 54*time.Minute)
}

// TestBanOfWhoWasForgotten: the instance still has the last ban, but the store does not.
func TestBanOfWhoWasForgotten(t *testing.T) {
	w, e := newWorld(t), rule(t)
	a, b := w.instance(), w.instance()
	a.deny(3, ada, e)
	a.refresh()
	w.clock.Advance(2 * time.Hour)
	removed, err := w.file.Sweep(t.Context(), w.clock.Now())
	check.OK(t, err)
	check.Equal(t, "removed", removed, 1)
	a.deny(3, ada, e)
	a.refresh()
	b.refresh()
	check.Equal(t, "rest at the other one", b.rest(ada, e), time.Minute)
	check.Equal(t, "began", len(w.began), 2)
}

// TestStoreFromABackup: stored bans apply, however old, and can be lifted. Bans missing from the
// store end.
func TestStoreFromABackup(t *testing.T) {
	w, e := newWorld(t), rule(t, func(s *ratelimit.Settings) { s.Default.Ban.For, s.Default.Ban.Max = time.Hour, time.Hour })
	a := w.instance()
	a.deny(3, ada, e)
	bob := ratelimit.Key{ClientID: "shop", Username: "bob"}
	a.deny(3, bob, e)
	a.refresh()
	old, err := w.store.Ban(t.Context(), ada)
	check.OK(t, err)
	w.store.Store = bans.NewRepository(testworld.OpenStore(t, filepath.Join(t.TempDir(), "backup.db")))
	old.Until = old.Since.Add(30 * time.Minute)
	check.OK(t, w.store.PutBan(t.Context(), old))
	w.clock.Advance(6 * time.Minute)
	a.refresh()
	check.Equal(t, "rest", a.rest(ada, e), 24*time.Minute)
	check.Equal(t, "rest of who is not stored", a.rest(bob, e), time.Duration(0))
	_, _, err = a.Lift(t.Context(), ada, false)
	check.OK(t, err)
	check.Equal(t, "rest when lifted", a.rest(ada, e), time.Duration(0))
}

// TestBanOntoABackup: if a key is banned again after a restore, that ban replaces the stored one.
func TestBanOntoABackup(t *testing.T) {
	w, e := newWorld(t), rule(t)
	a := w.instance()
	a.deny(3, ada, e)
	a.refresh()
	old, err := w.store.Ban(t.Context(), ada)
	check.OK(t, err)
	w.store.Store = bans.NewRepository(testworld.OpenStore(t, filepath.Join(t.TempDir(), "backup.db")))
	check.OK(t, w.store.PutBan(t.Context(), old))
	w.clock.Advance(time.Minute)
	a.deny(3, ada, e)
	check.OK(t, a.Flush(t.Context()))
	check.Equal(t, "waiting", a.Stats().Waiting, 0)
	a.deny(3, ada, e)
	check.OK(t, a.Flush(t.Context()))
	stored, err := w.store.Ban(t.Context(), ada)
	check.OK(t, err)
	check.Equal(t, "stored as it is in memory", stored.Until.Sub(w.clock.Now()), a.rest(ada, e))
	check.Equal(t, "bans before", stored.Level, 1)
}

// failsFor is a store that cannot store the ban of one key.
type failsFor struct {
	bans.Store
	key ratelimit.Key
}

func (s failsFor) PutBan(ctx context.Context, b bans.Ban) error {
	if b.Key == s.key {
		return errAway
	}
	return s.Store.PutBan(ctx, b)
}

// TestOneBanThatCannotBeStored: the other bans are stored and can be lifted.
func TestOneBanThatCannotBeStored(t *testing.T) {
	w, e := newWorld(t), rule(t)
	a := w.instance()
	w.store.Store = failsFor{w.store.Store, ada}
	a.deny(3, ada, e)
	for i := range 20 {
		a.deny(3, ratelimit.Key{ClientID: "shop", Username: fmt.Sprint("user ", i)}, e)
	}
	check.ErrorSays(t, a.Flush(t.Context()), "store bans: 1 of 21 failed: away")
	check.Equal(t, "waiting", a.Stats().Waiting, 1)
	_, _, err := a.Lift(t.Context(), ratelimit.Key{ClientID: "shop", Username: "user 7"}, false)
	check.OK(t, err)
}

// TestNewerBanIsReadFirst: a newer stored ban replaces a waiting one without a write.
func TestNewerBanIsReadFirst(t *testing.T) {
	w, e := newWorld(t), rule(t)
	a, b := w.instance(), w.instance()
	a.deny(3, ada, e)
	b.deny(3, ada, e)
	b.refresh()
	puts := w.store.puts
	a.refresh()
	check.Equal(t, "writes", w.store.puts-puts, 0)
}

// TestDenialsCountAnewWhileTheStoreIsAway: denials are counted from zero after a ban, stored or
// not, and those during a ban do not count, even if it is shorter than the window of denials.
func TestDenialsCountAnewWhileTheStoreIsAway(t *testing.T) {
	w, e := newWorld(t), rule(t, func(s *ratelimit.Settings) { s.Default.Ban.For = time.Second })
	a := w.instance()
	w.store.fails = true
	a.deny(13, ada, e)
	w.clock.Advance(time.Second)
	a.deny(2, ada, e)
	check.Equal(t, "rest", a.rest(ada, e), time.Duration(0))
	a.deny(1, ada, e)
	check.Equal(t, "rest after one more", a.rest(ada, e), 2*time.Second)
}

// slow is a store that calls a function before it stores a ban.
type slow struct {
	bans.Store
	before func()
}

func (s slow) PutBan(ctx context.Context, b bans.Ban) error {
	s.before()
	return s.Store.PutBan(ctx, b)
}

// TestNextBanBeginsWhileOneIsStored: it stays in the queue and is stored by the next call.
func TestNextBanBeginsWhileOneIsStored(t *testing.T) {
	w, e := newWorld(t), rule(t)
	a := w.instance()
	file := w.store.Store
	w.store.Store = slow{file, func() {
		w.clock.Advance(time.Minute)
		a.deny(3, ada, e)
	}}
	a.deny(3, ada, e)
	check.OK(t, a.Flush(t.Context()))
	check.Equal(t, "waiting", a.Stats().Waiting, 1)
	check.Equal(t, "rest", a.rest(ada, e), 2*time.Minute)
	w.store.Store = file
	check.OK(t, a.Flush(t.Context()))
	check.Equal(t, "waiting", a.Stats().Waiting, 0)
	stored, err := file.Ban(t.Context(), ada)
	check.OK(t, err)
	check.Equal(t, "bans before", stored.Level, 1)
	check.Equal(t, "began", w.began, []string{"shop ada 2m0s enforce"}) // the first was over before it was read back
}

// TestBeganMayLook: Began is called without the mutex, so it may read the bans.
func TestBeganMayLook(t *testing.T) {
	w, e, dry := newWorld(t), rule(t), rule(t, inDryRun)
	var a *bans.Bans
	began := 0
	a, err := bans.New(t.Context(), bans.Options{
		Store: w.store, Counters: counting.NewCounters(1000), Clock: w.clock.Now,
		Began: func(bans.Ban, ratelimit.Mode) { _, began = a.Stats(), began+1 },
	})
	check.OK(t, err)
	for range 3 {
		a.Denied(w.clock.Now(), ada, e)
		a.Denied(w.clock.Now(), ada, dry)
	}
	w.store.loses = true
	_ = a.Flush(t.Context())
	w.store.loses = false
	check.OK(t, a.Refresh(t.Context()))
	bob := ratelimit.Key{ClientID: "shop", Username: "bob"}
	for range 3 {
		a.Denied(w.clock.Now(), bob, e)
	}
	check.OK(t, a.Flush(t.Context()))
	check.Equal(t, "began", began, 3)
}
