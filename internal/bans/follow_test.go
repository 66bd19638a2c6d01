package bans_test

import (
	"context"
	"testing"
	"time"

	"oauth-server/internal/bans"
	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store/embedded"
)

// TestDenialsWhileBannedAreNone: also where the ban is shorter than the time in which denials are counted.
func TestDenialsWhileBannedAreNone(t *testing.T) {
	w, e := newWorld(t), rule(t, func(s *ratelimit.Settings) { s.Default.Ban.For = time.Second })
	a := w.instance()
	a.deny(3, ada, e)
	a.refresh()
	a.deny(10, ada, e)
	w.clock.Advance(time.Second)
	a.deny(2, ada, e)
	check.Equal(t, "rest", a.rest(ada, e), time.Duration(0))
}

// seeing is a store that shows of its bans what a test wants.
type seeing struct {
	bans.Store
	show func(since bans.Mark) ([]bans.Ban, bool)
}

func (s seeing) Bans(ctx context.Context, since bans.Mark) ([]bans.Ban, int64, error) {
	if list, instead := s.show(since); instead {
		return list, since.Number, nil
	}
	return s.Store.Bans(ctx, since)
}

// TestOlderBanIsNotTakenOver: what was read before it changed.
func TestOlderBanIsNotTakenOver(t *testing.T) {
	w, e := newWorld(t), rule(t)
	a := w.instance()
	a.deny(3, ada, e)
	a.refresh()
	old, err := w.store.Ban(t.Context(), ada)
	check.OK(t, err)
	_, _, err = a.Lift(t.Context(), ada, false)
	check.OK(t, err)
	w.store.Store = seeing{w.store.Store, func(bans.Mark) ([]bans.Ban, bool) { return []bans.Ban{old}, true }}
	a.refresh()
	check.Equal(t, "rest", a.rest(ada, e), time.Duration(0))
}

// TestAllAreReadNowAndThen: what did not appear after the mark is found all the same.
func TestAllAreReadNowAndThen(t *testing.T) {
	w, e := newWorld(t), rule(t, func(s *ratelimit.Settings) { s.Default.Ban.For, s.Default.Ban.Max = time.Hour, time.Hour })
	a, b := w.instance(), w.instance()
	b.deny(3, ratelimit.Key{ClientID: "shop"}, e)
	b.refresh()
	a.refresh() // it has a mark
	b.deny(3, ada, e)
	b.refresh()
	w.store.Store = seeing{w.store.Store, func(since bans.Mark) ([]bans.Ban, bool) { return nil, since.Number > 0 }}
	a.refresh()
	check.Equal(t, "rest", a.rest(ada, e), time.Duration(0))
	w.clock.Advance(6 * time.Minute)
	a.refresh()
	check.Equal(t, "rest after six minutes", a.rest(ada, e), 54*time.Minute)
}

// TestBanOfWhoWasForgotten: the instance still knows the last ban when the store does not.
func TestBanOfWhoWasForgotten(t *testing.T) {
	w, e := newWorld(t), rule(t)
	a, b := w.instance(), w.instance()
	a.deny(3, ada, e)
	a.refresh()
	w.clock.Advance(2 * time.Hour)
	file, ok := w.store.Store.(*embedded.Store)
	check.Equal(t, "a file", ok, true)
	removed, err := file.Sweep(t.Context(), w.clock.Now())
	check.OK(t, err)
	check.Equal(t, "removed", removed, 1)
	a.deny(3, ada, e)
	a.refresh()
	b.refresh()
	check.Equal(t, "rest at the other one", b.rest(ada, e), time.Minute)
	check.Equal(t, "began", len(w.began), 2)
}
