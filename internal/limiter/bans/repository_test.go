package bans_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/limiter/bans"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store"
)

// TestRepository: every field is read back, by key, by client and from a time on.
func TestRepository(t *testing.T) {
	r := bans.NewRepository(testworld.OpenStore(t, filepath.Join(t.TempDir(), "test.db")))
	ctx := t.Context()
	_, err := r.Ban(ctx, ada)
	check.Equal(t, "none", errors.Is(err, bans.ErrNotFound), true)
	want := bans.Ban{
		Key: ada, Level: 3, Since: testworld.Noon, Until: testworld.Noon.Add(time.Minute), Forget: testworld.Noon.Add(time.Hour),
		Lifted: testworld.Noon.Add(time.Second), Version: 2,
	}
	for _, b := range []bans.Ban{want, {Key: ada, Version: 2}, {Key: ada, Version: 1}} { // the first of the greatest version stays
		check.OK(t, r.PutBan(ctx, b))
		got, err := r.Ban(ctx, ada)
		check.OK(t, err)
		check.Equal(t, "ban", got, want)
	}

	for _, k := range []ratelimit.Key{{ClientID: "shop"}, {ClientID: "shopping", Username: "ada"}} {
		check.OK(t, r.PutBan(ctx, bans.Ban{Key: k, Version: 1}))
	}
	of, err := r.Of(ctx, "shop")
	check.OK(t, err)
	check.Equal(t, "of the client", []ratelimit.Key{of[0].Key, of[1].Key}, []ratelimit.Key{{ClientID: "shop"}, ada})
	check.Equal(t, "of the client", len(of), 2)
	now, err := r.Now(ctx)
	check.OK(t, err)
	for since, n := range map[time.Time]int{now: 3, now.Add(time.Hour): 0, {}: 3} {
		list, err := r.Bans(ctx, since)
		check.OK(t, err)
		check.Equal(t, "since "+since.String(), len(list), n)
	}
}

// TestUnreadableBan: it has no effect. Once it is deleted, the next ban is stored.
func TestUnreadableBan(t *testing.T) {
	w, e := newWorld(t), rule(t)
	_, err := w.file.Put(t.Context(), bans.Table, store.Record{Key: "shop ada", Value: []byte(`{"level":"high"}`)}, store.Seen{})
	check.OK(t, err)
	a := w.instance()
	check.Equal(t, "rest", a.rest(ada, e), time.Duration(0))
	_, _, err = a.Lift(t.Context(), ada, true)
	check.Equal(t, "there is none to lift", errors.Is(err, bans.ErrNotFound), true)
	a.deny(3, ada, e)
	a.refresh()
	check.Equal(t, "rest after a ban", a.rest(ada, e), time.Minute)
	check.Equal(t, "waiting", a.Stats().Waiting, 1)
	_, _, err = a.Lift(t.Context(), ada, false)
	check.OK(t, err) // its version is greater
	check.OK(t, w.file.Delete(t.Context(), bans.Table, nil, "shop ada"))
	w.clock.Advance(time.Second)
	a.deny(3, ada, e)
	a.refresh()
	check.Equal(t, "after a restart", w.instance().rest(ada, e), 2*time.Minute)
}
