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
		Lifted: testworld.Noon.Add(time.Second),
	}
	want.Seen, err = r.PutBan(ctx, want)
	check.OK(t, err)
	got, err := r.Ban(ctx, ada)
	check.OK(t, err)
	check.Equal(t, "ban", got, want)
	_, err = r.PutBan(ctx, bans.Ban{Key: ada})
	check.Equal(t, "in another state", errors.Is(err, store.ErrConflict), true)

	for _, k := range []ratelimit.Key{{ClientID: "shop"}, {ClientID: "shopping", Username: "ada"}} {
		_, err = r.PutBan(ctx, bans.Ban{Key: k})
		check.OK(t, err)
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

// TestUnreadableBan: it has no effect, and the next ban replaces it.
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
	check.Equal(t, "after a restart", w.instance().rest(ada, e), time.Minute)
	other := w.instance()
	for _, spoil := range []func(){
		func() {
			check.OK(t, w.file.PutAll(t.Context(), bans.Table, []store.Record{{Key: "shop ada", Value: []byte(`{"level":"high"}`), Version: 9}}))
		},
		func() { check.OK(t, w.file.Delete(t.Context(), bans.Table, nil, "shop ada")) },
	} {
		spoil()
		_, _, err = a.Lift(t.Context(), ada, false)
		check.OK(t, err)
		for _, i := range []*instance{a, other, w.instance()} {
			i.refresh()
			check.Equal(t, "after it was lifted", i.rest(ada, e), time.Duration(0))
		}
		a.deny(3, ada, e)
		a.refresh()
	}
}
