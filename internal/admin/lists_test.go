package admin_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/admin"
	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

func TestClientsTellWhatApplies(t *testing.T) {
	w := newWorld(t)
	w.ask("shop", "", 3)
	a := w.get("/clients")
	equal(t, "source", a.at("clients", 1, "source"), any("file"))
	equal(t, "effective", a.at("clients", 1, "effective", "user", 0, "requests"), any(7.0))
	equal(t, "admin", a.at("clients", 2, "admin"), any(true))
	equal(t, "name", a.at("clients", 3, "client_name"), any("Shop"))
	equal(t, "activity", a.at("clients", 3, "activity", "allowed"), any(3.0))
	equal(t, "admin", a.at("clients", 4, "admin"), any(false))
}

// spoiledTrail is a trail with an unreadable entry of version 2.
type spoiledTrail struct{ clientcfg.EventLog }

func (s spoiledTrail) Events(ctx context.Context, q clientcfg.EventQuery) ([]clientcfg.Event, error) {
	events, err := s.EventLog.Events(ctx, q)
	for i := range events {
		if events[i].Number == 2 {
			events[i] = clientcfg.Event{Number: 2, Err: errors.New("unexpected EOF")}
		}
	}
	return events, err
}

// TestAuditShowsTheOthers: an unreadable entry is marked.
func TestAuditShowsTheOthers(t *testing.T) {
	store := openStore(t)
	w := newInstance(t, "i-1", store, file(), func(o *admin.Options) { o.Events = spoiledTrail{o.Events} })
	for range 3 {
		w.patch("/policies/shop?reason=r", `{"trusted":true}`).is(http.StatusOK)
	}
	a := w.get("/audit")
	equal(t, "entries", len(a.at("entries").([]any)), 3)
	equal(t, "the first", a.at("entries", 0, "reason"), any("r"))
	check.Equal(t, "the one that cannot be read", a.at("entries", 1), any(map[string]any{"version": 2.0, "unreadable": "unexpected EOF"}))
	equal(t, "the last", a.at("entries", 2, "version"), any(1.0))
	a = w.get("/audit?limit=2")
	equal(t, "next", a.at("next"), any(2.0))
}

func TestCountersShowWhatTheLimiterKnows(t *testing.T) {
	w := newWorld(t)
	w.put("/policies/shop", `{"client":[{"requests":4}],"user":[{"requests":10}]}`).is(http.StatusOK)
	w.put("/candidates/shop", `{"client":[{"requests":2}]}`).is(http.StatusOK)
	w.ask("shop", "", 6)
	w.ask("shop", "ada", 5)
	w.clock.Advance(15 * time.Second)
	a := w.get("/clients/shop/counters")
	equal(t, "first", a.at("counters", 0, "username"), nil)
	equal(t, "in flight", a.at("counters", 0, "i"), any(4.0))
	equal(t, "known", a.at("counters", 0, "g"), any(0.0))
	equal(t, "estimate", a.at("counters", 0, "estimate"), any(4.0))
	equal(t, "usage", a.at("counters", 0, "usage"), any(1.0))
	equal(t, "limit", a.at("counters", 0, "limit", "requests"), any(4.0))
	// A frame begins at noon. It leaves the window from 12:01 on, and one of four requests is free
	// as soon as part of it has.
	equal(t, "free at", a.at("counters", 0, "free_at"), any("2026-03-01T12:01:00.001Z"))
	equal(t, "second", a.at("counters", 1, "username"), any("ada"))
	equal(t, "free", a.at("counters", 1, "free_at"), nil)
	equal(t, "candidate", a.at("counters", 2, "candidate"), any(true))
	equal(t, "candidate's client", a.at("counters", 2, "client_id"), any("shop"))
	w.change("DELETE", "/candidates/shop", "").is(http.StatusNoContent)
	equal(t, "without the candidate", len(w.get("/clients/shop/counters").at("counters").([]any)), 2)
	equal(t, "one user", len(w.get("/clients/shop/counters?username=ada").at("counters").([]any)), 1)
	equal(t, "one user, in capitals", len(w.get("/clients/shop/counters?username=ADA").at("counters").([]any)), 1)
	equal(t, "the client itself", len(w.get("/clients/shop/counters?username=").at("counters").([]any)), 1)
	equal(t, "nothing counted", len(w.get("/clients/app/counters").at("counters").([]any)), 0)
}

// TestCountersOfOtherInstances: counters of keys that only other instances serve are read from the
// store.
func TestCountersOfOtherInstances(t *testing.T) {
	w := newWorld(t)
	w.put("/policies/shop", `{"user":[{"requests":10},{"name":"per-hour","requests":100,"window":"1h"}]}`).is(http.StatusOK)
	w.ask("shop", "ada", 3)
	minute, hour := noon.Unix(), noon.Unix()
	stored := func(username, limit string, frame, count int64) syncer.Item {
		return syncer.Item{ID: ratelimit.CounterID{ClientID: "shop", Username: username, Limit: limit}, Write: &syncer.Write{
			NewEtag: 1, Writer: "i9", Seq: 1, Frame: 60_000,
			Delta: []ratelimit.FrameCount{{Name: frame, Count: count}}, Expire: noon.Add(time.Hour),
		}}
	}
	results, err := w.store.Exchange(t.Context(), []syncer.Item{
		stored("ada", "", minute, 9), // also in memory here, which takes precedence
		stored("bob", "", minute, 10),
		stored("bob", "per-day", minute, 10), // of a limit that no longer exists
		stored("bob", "per-hour", hour, 10), stored("eve", "", minute-600, 10),
	})
	check.OK(t, err)
	for i, r := range results {
		equal(t, fmt.Sprintf("status of write %d", i), r.Status, syncer.Applied)
	}
	a := w.get("/clients/shop/counters")
	var shown []string
	for i := range a.at("counters").([]any) {
		shown = append(shown, fmt.Sprintf("%v %v %v", a.at("counters", i, "username"), a.at("counters", i, "limit", "name"), a.at("counters", i, "estimate")))
	}
	equal(t, "counters", strings.Join(shown, ", "), "bob per-minute 10, ada per-minute 3, bob per-hour 10, ada per-hour 3")
	equal(t, "last seen here", a.at("counters", 0, "last_seen"), nil)
	equal(t, "incomplete", a.at("incomplete"), any(false))
	check.OK(t, w.store.Close())
	a = w.get("/clients/shop/counters")
	equal(t, "without the store", len(a.at("counters").([]any)), 2)
	equal(t, "incomplete", a.at("incomplete"), any(true))
}

// TestCountersOfOneOfManyUsers: a user's counters are found however many other users the client
// has.
func TestCountersOfOneOfManyUsers(t *testing.T) {
	w := newWorld(t)
	const others = 1000
	items := make([]syncer.Item, others)
	put := func(items ...syncer.Item) {
		t.Helper()
		_, err := w.store.Exchange(t.Context(), items)
		check.OK(t, err)
	}
	item := func(username string, count int64) syncer.Item {
		return syncer.Item{ID: ratelimit.CounterID{ClientID: "shop", Username: username}, Write: &syncer.Write{
			NewEtag: 1, Writer: "i9", Seq: 1, Frame: 60_000,
			Delta: []ratelimit.FrameCount{{Name: noon.Unix(), Count: count}}, Expire: noon.Add(time.Hour),
		}}
	}
	for i := range items {
		items[i] = item(fmt.Sprintf("u%04d", i), 2)
		w.ask("shop", fmt.Sprintf("v%04d", i), 2)
	}
	put(items...)
	equal(t, "all are looked at", w.get("/clients/shop/counters").at("incomplete"), any(false))
	put(item("zoe", 1))
	w.ask("shop", "zac", 1)
	a := w.get("/clients/shop/counters?limit=10")
	equal(t, "limit", len(a.at("counters").([]any)), 10)
	equal(t, "there are more than are looked at", a.at("incomplete"), any(true))
	for _, username := range []string{"zoe", "zac"} {
		a = w.get("/clients/shop/counters?limit=10&username=" + username)
		equal(t, "counters of "+username, len(a.at("counters").([]any)), 1)
		equal(t, "username", a.at("counters", 0, "username"), any(username))
		equal(t, "incomplete", a.at("incomplete"), any(false))
	}
}

func TestResetForgetsOnAllInstances(t *testing.T) {
	store := openStore(t)
	a, b := newInstance(t, "i-1", store, file()), newInstance(t, "i-2", store, file())
	a.put("/policies/shop", `{"client":[{"requests":4}],"user":[{"requests":4}]}`).is(http.StatusOK)
	check.OK(t, b.follower.Refresh(t.Context()))
	exhaust := func() {
		for _, w := range []*instance{a, b} {
			w.ask("shop", "", 4)
			w.ask("shop", "ada", 4)
		}
	}
	reset := func(query string) {
		t.Helper()
		a.send(request{method: "DELETE", path: "/clients/shop/counters" + query, token: writer}).is(http.StatusNoContent)
		check.OK(t, b.follower.Refresh(t.Context()))
	}
	exhaust()
	reset("?username=ada&reason=sorry")
	for _, w := range []*instance{a, b} {
		equal(t, "the user passes", w.ask("shop", "ada", 1), 1)
		equal(t, "the client does not", w.ask("shop", "", 1), 0)
	}
	exhaust()
	reset("?username=%EF%BC%A1da&reason=typed+in+full+width")
	for _, w := range []*instance{a, b} {
		equal(t, "the user passes again", w.ask("shop", "ada", 1), 1)
	}
	exhaust()
	reset("?username=")
	for _, w := range []*instance{a, b} {
		equal(t, "the user does not pass", w.ask("shop", "ada", 1), 0)
		equal(t, "the client passes", w.ask("shop", "", 1), 1)
	}
	exhaust()
	reset("")
	for _, w := range []*instance{a, b} {
		equal(t, "both pass", w.ask("shop", "ada", 1)+w.ask("shop", "", 1), 2)
	}
	entry := a.get("/audit?target=clients/shop/counters&before=3")
	equal(t, "action", entry.at("entries", 0, "action"), any("reset"))
	equal(t, "reason", entry.at("entries", 0, "reason"), any("sorry"))
	equal(t, "whose", entry.at("entries", 0, "after", "username"), any("ada"))
	// An instance that starts later has nothing to forget.
	c := newInstance(t, "i-3", store, file())
	c.ask("shop", "", 4)
	check.OK(t, c.follower.Refresh(t.Context()))
	equal(t, "still denied", c.ask("shop", "", 1), 0)
}

func TestTopShowsAllInstances(t *testing.T) {
	store := openStore(t)
	a, b := newInstance(t, "i-1", store, file()), newInstance(t, "i-2", store, ratelimit.DefaultSettings())
	a.ask("shop", "ada", 50)
	a.ask("app", "", 10)
	b.ask("shop", "ada", 60)
	b.ask("ops", "", 99)
	b.publish()
	top := a.get("/top?limit=2")
	equal(t, "talkers", fmt.Sprintf("%v %v", top.at("talkers", 0, "client_id"), top.at("talkers", 1, "client_id")), "shop ops")
	equal(t, "requests", top.at("talkers", 0, "allowed"), any(110.0))
	equal(t, "nearest", fmt.Sprintf("%v %v", top.at("near_limit", 0, "client_id"), top.at("near_limit", 0, "usage")), "ops 0.99")
	equal(t, "next", fmt.Sprintf("%v %v", top.at("near_limit", 1, "username"), top.at("near_limit", 1, "instance")), "ada i-2")
	equal(t, "listed", len(top.at("near_limit").([]any)), 2)
}
