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
	"oauth-server/internal/store/exchange"
)

func TestClientsTellWhatApplies(t *testing.T) {
	w := newWorld(t)
	w.ask("shop", "", 3)
	w.get("/clients").has("clients.1.source=file", "clients.1.effective.user.0.requests=7", "clients.2.admin=true", "clients.3.client_name=Shop",
		"clients.3.activity.allowed=3", "clients.4.admin=false")
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
	a := w.get("/audit").has("entries.#=3", "entries.0.reason=r")
	check.Equal(t, "the one that cannot be read", a.at("entries", 1), any(map[string]any{"version": 2.0, "unreadable": "unexpected EOF"}))
	a.has("entries.2.version=1")
	w.get("/audit?limit=2").has("next=2")
}

func TestCountersShowWhatTheLimiterKnows(t *testing.T) {
	w := newWorld(t)
	w.put("/policies/shop", `{"client":[{"requests":4}],"user":[{"requests":10}]}`).is(http.StatusOK)
	w.put("/candidates/shop", `{"client":[{"requests":2}]}`).is(http.StatusOK)
	w.ask("shop", "", 6)
	w.ask("shop", "ada", 5)
	w.clock.Advance(15 * time.Second)
	a := w.get("/clients/shop/counters").has("counters.0.username=null", "counters.0.i=4", "counters.0.g=0", "counters.0.estimate=4",
		"counters.0.usage=1", "counters.0.limit.requests=4")
	// A frame begins at noon. It leaves the window from 12:01 on, and one of four requests is free
	// as soon as part of it has.
	a.has("counters.0.free_at=2026-03-01T12:01:00.001Z", "counters.1.username=ada", "counters.1.free_at=null", "counters.2.candidate=true",
		"counters.2.client_id=shop")
	w.change("DELETE", "/candidates/shop", "").is(http.StatusNoContent)
	w.get("/clients/shop/counters").has("counters.#=2")
	w.get("/clients/shop/counters?username=ada").has("counters.#=1")
	w.get("/clients/shop/counters?username=ADA").has("counters.#=1")
	w.get("/clients/shop/counters?username=").has("counters.#=1")
	w.get("/clients/app/counters").has("counters.#=0")
}

// TestCountersOfOtherInstances: counters of keys that only other instances serve are read from the
// store.
func TestCountersOfOtherInstances(t *testing.T) {
	w := newWorld(t)
	w.put("/policies/shop", `{"user":[{"requests":10},{"name":"per-hour","requests":100,"window":"1h"}]}`).is(http.StatusOK)
	w.ask("shop", "ada", 3)
	minute, hour := noon.Unix(), noon.Unix()
	stored := func(username, limit string, frame, count int64) exchange.Item {
		return exchange.Item{ID: ratelimit.CounterID{ClientID: "shop", Username: username, Limit: limit}, Write: &exchange.Write{
			NewEtag: 1, Writer: "i9", Seq: 1, Frame: 60_000,
			Delta: []ratelimit.FrameCount{{Name: frame, Count: count}}, Expire: noon.Add(time.Hour),
		}}
	}
	results, err := w.store.Exchange(t.Context(), []exchange.Item{
		stored("ada", "", minute, 9), // also in memory here, which takes precedence
		stored("bob", "", minute, 10),
		stored("bob", "per-day", minute, 10), // of a limit that no longer exists
		stored("bob", "per-hour", hour, 10), stored("eve", "", minute-600, 10),
	})
	check.OK(t, err)
	for i, r := range results {
		check.Equal(t, fmt.Sprintf("status of write %d", i), r.Status, exchange.Applied)
	}
	a := w.get("/clients/shop/counters")
	var shown []string
	for i := range a.at("counters").([]any) {
		shown = append(shown, fmt.Sprintf("%v %v %v", a.at("counters", i, "username"), a.at("counters", i, "limit", "name"), a.at("counters", i, "estimate")))
	}
	check.Equal(t, "counters", strings.Join(shown, ", "), "bob per-minute 10, ada per-minute 3, bob per-hour 10, ada per-hour 3")
	a.has("counters.0.last_seen=null", "incomplete=false")
	check.OK(t, w.store.Close())
	w.get("/clients/shop/counters").has("counters.#=2", "incomplete=true")
}

// TestCountersOfOneOfManyUsers: a user's counters are found however many other users the client
// has.
func TestCountersOfOneOfManyUsers(t *testing.T) {
	w := newWorld(t)
	const others = 1000
	items := make([]exchange.Item, others)
	put := func(items ...exchange.Item) {
		t.Helper()
		_, err := w.store.Exchange(t.Context(), items)
		check.OK(t, err)
	}
	item := func(username string, count int64) exchange.Item {
		return exchange.Item{ID: ratelimit.CounterID{ClientID: "shop", Username: username}, Write: &exchange.Write{
			NewEtag: 1, Writer: "i9", Seq: 1, Frame: 60_000,
			Delta: []ratelimit.FrameCount{{Name: noon.Unix(), Count: count}}, Expire: noon.Add(time.Hour),
		}}
	}
	for i := range items {
		items[i] = item(fmt.Sprintf("u%04d", i), 2)
		w.ask("shop", fmt.Sprintf("v%04d", i), 2)
	}
	put(items...)
	w.get("/clients/shop/counters").has("incomplete=false")
	put(item("zoe", 1))
	w.ask("shop", "zac", 1)
	w.get("/clients/shop/counters?limit=10").has("counters.#=10", "incomplete=true")
	for _, username := range []string{"zoe", "zac"} {
		w.get("/clients/shop/counters?limit=10&username="+username).has("counters.#=1", "counters.0.username="+username, "incomplete=false")
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
		check.Equal(t, "the user passes", w.ask("shop", "ada", 1), 1)
		check.Equal(t, "the client does not", w.ask("shop", "", 1), 0)
	}
	exhaust()
	reset("?username=%EF%BC%A1da&reason=typed+in+full+width")
	for _, w := range []*instance{a, b} {
		check.Equal(t, "the user passes again", w.ask("shop", "ada", 1), 1)
	}
	exhaust()
	reset("?username=")
	for _, w := range []*instance{a, b} {
		check.Equal(t, "the user does not pass", w.ask("shop", "ada", 1), 0)
		check.Equal(t, "the client passes", w.ask("shop", "", 1), 1)
	}
	exhaust()
	reset("")
	for _, w := range []*instance{a, b} {
		check.Equal(t, "both pass", w.ask("shop", "ada", 1)+w.ask("shop", "", 1), 2)
	}
	a.get("/audit?target=clients/shop/counters&before=3").has("entries.0.action=reset", "entries.0.reason=sorry",
		"entries.0.after.username=ada")
	// An instance that starts later has nothing to forget.
	c := newInstance(t, "i-3", store, file())
	c.ask("shop", "", 4)
	check.OK(t, c.follower.Refresh(t.Context()))
	check.Equal(t, "still denied", c.ask("shop", "", 1), 0)
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
	check.Equal(t, "talkers", fmt.Sprintf("%v %v", top.at("talkers", 0, "client_id"), top.at("talkers", 1, "client_id")), "shop ops")
	top.has("talkers.0.allowed=110")
	check.Equal(t, "nearest", fmt.Sprintf("%v %v", top.at("near_limit", 0, "client_id"), top.at("near_limit", 0, "usage")), "ops 0.99")
	check.Equal(t, "next", fmt.Sprintf("%v %v", top.at("near_limit", 1, "username"), top.at("near_limit", 1, "instance")), "ada i-2")
	top.has("near_limit.#=2")
}
