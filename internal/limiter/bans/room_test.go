package bans_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/limiter/bans"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store"
)

// TestNoRoom: banned keys stay banned, no further keys are banned, and each refresh reports that
// once.
func TestNoRoom(t *testing.T) {
	w, e := newWorld(t), rule(t)
	many := make([]bans.Ban, bans.Max)
	for i := range many {
		k := ratelimit.Key{ClientID: "shop", Username: fmt.Sprint("user ", i)}
		many[i] = bans.Ban{Key: k, Seen: store.Seen{Version: 1}, Since: w.clock.Now(), Until: w.clock.Now().Add(time.Minute), Forget: w.clock.Now().Add(time.Hour)}
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
