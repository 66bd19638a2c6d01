package admin_test

import (
	"net/http"
	"testing"
	"time"

	"oauth-server/internal/app/repositories"
	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store/mongo"
	"oauth-server/internal/store/mongo/mongotest"
)

func TestTemporaryChangeIsShownAndEnds(t *testing.T) {
	w := newWorld(t)
	w.put("/policies/shop", `{"client":[{"requests":9}]}`).is(http.StatusOK)
	const end = "2026-03-01T14:00:00Z"
	w.put("/policies/shop?validate=true&for=2h", `{"client":[{"requests":3}]}`).is(http.StatusOK).has("until=" + end)
	w.put("/policies/shop?for=2h", `{"client":[{"requests":3}]}`).is(http.StatusOK).has("meta.until=" + end)
	w.get("/policies/shop").has("meta.until=" + end)
	w.get("/clients?prefix=shop").has("clients.0.until=" + end)
	w.get("/audit").has("entries.0.until=" + end)
	w.get("/changes").has("targets.0.until=" + end)
	w.get("/changes").has("targets.0.returns_to.client.0.requests=9")
	w.patch("/policies/shop?validate=true", `{"note":"x"}`).is(http.StatusOK).has("was_until=" + end)
	w.put("/policies/shop?for=1s", `{}`).is(http.StatusUnprocessableEntity)
	w.put("/policies/shop?for=", `{}`).is(http.StatusUnprocessableEntity).says("must be from 1m to 30d")
	w.changes("", `{"for":"","changes":[{"target":"policies/shop","value":null}]}`).is(http.StatusUnprocessableEntity).says("must be from 1m to 30d")

	w.clock.Advance(2*time.Hour - time.Second)
	check.OK(t, w.policies.End(t.Context()))
	check.Equal(t, "not yet", w.policies.Snapshot().For("shop").Client.All()[0].Requests, 3)
	w.clock.Advance(time.Second)
	etag := w.get("/changes").header.Get("ETag")
	check.OK(t, w.policies.End(t.Context()))
	check.Equal(t, "same ETag", w.get("/changes").header.Get("ETag") == etag, false)
	check.Equal(t, "limit", w.policies.Snapshot().For("shop").Client.All()[0].Requests, 9)
	w.get("/policies/shop").has("meta.until=null")
	w.get("/audit").has("entries.0.until=" + end)
}

// TestEveryChangeCanBeTemporary: every kind of target can be temporary, with every method.
func TestEveryChangeCanBeTemporary(t *testing.T) {
	w := newWorld(t)
	w.put("/policies/shop", `{"trusted":true}`).is(http.StatusOK)
	w.put("/candidates/app", `{"user":[{"requests":5}]}`).is(http.StatusOK)
	before := w.get("/changes").at("targets")
	w.change("DELETE", "/policies/shop?for=1h", "").is(http.StatusNoContent)
	w.change("POST", "/candidates/app/promote?for=1h", "").is(http.StatusOK)
	w.patch("/settings?for=1h", `{"mode":"off"}`).is(http.StatusOK)
	w.put("/candidates/shop?for=1h", `{"user":[{"requests":5}]}`).is(http.StatusOK)
	w.get("/settings").has("meta.until=2026-03-01T13:00:00Z")
	w.get("/candidates/shop").has("meta.until=2026-03-01T13:00:00Z")
	w.get("/changes").has("targets.2.returns_to.trusted=true")
	w.clock.Advance(time.Hour)
	check.OK(t, w.policies.End(t.Context()))
	check.Equal(t, "set", w.get("/changes").at("targets"), before)
}

// TestChangeMadeBeforeAnEnd: an ETag that was read before the end of a temporary value is refused
// after it, with the reason.
func TestChangeMadeBeforeAnEnd(t *testing.T) {
	w := newWorld(t)
	w.put("/policies/shop", `{"client":[{"requests":9}]}`).is(http.StatusOK)
	w.put("/policies/shop?for=1h", `{"client":[{"requests":3}]}`).is(http.StatusOK)
	etag := w.get("/policies/shop").header.Get("ETag")
	w.clock.Advance(time.Hour)
	check.OK(t, w.policies.End(t.Context()))
	w.send(request{method: http.MethodPut, path: "/policies/shop", token: writer, body: `{}`, ifMatch: etag}).
		is(http.StatusPreconditionFailed).says("a temporary value has ended")
}

// TestEveryInstanceEndsIt: restarts forget nothing, even if the entry is swept, and nothing is
// written at the end.
func TestEveryInstanceEndsIt(t *testing.T) {
	onEveryStore(t, everyInstanceEndsIt)
}

// onEveryStore runs a test with the embedded store and with MongoDB.
func onEveryStore(t *testing.T, test func(t *testing.T, store *shared)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) { test(t, openStore(t)) })
	t.Run("MongoDB", func(t *testing.T) {
		uri, database := mongotest.Database(t)
		store, err := mongo.Open(t.Context(), mongo.Options{URI: uri, Database: database})
		check.OK(t, err)
		_, err = store.Migrate(t.Context())
		check.OK(t, err)
		t.Cleanup(func() { check.OK(t, store.Close()) })
		all, err := repositories.On(t.Context(), store)
		check.OK(t, err)
		test(t, sharedOn(t, repositories.Store{Backend: store, All: all}))
	})
}

func everyInstanceEndsIt(t *testing.T, store *shared) {
	t.Helper()
	today := time.Since(noon) // the TTL index goes by the time of the database
	first := newInstance(t, "i-1", store, file())
	first.clock.Advance(today)
	first.patch("/policies/shop?for=30d", `{"trusted":true}`).is(http.StatusOK)
	first.clock.Advance(30 * 24 * time.Hour)
	check.OK(t, store.AddEvent(t.Context(), clientcfg.Event{Action: "x", At: first.clock.Now()})) // the newest entry stays
	check.OK(t, store.SweepEvents(t.Context(), first.clock.Now(), first.clock.Now()))
	second := newInstance(t, "i-2", store, file())
	second.clock.Advance(today + 30*24*time.Hour)
	store.clock.Advance(today + 30*24*time.Hour)
	for _, w := range []*instance{first, second} {
		check.Equal(t, "trusted before", w.policies.Snapshot().For("shop").Trusted, true)
		check.OK(t, w.policies.End(t.Context()))
		check.Equal(t, "trusted on "+w.name, w.policies.Snapshot().For("shop").Trusted, false)
	}
	third := newInstance(t, "i-3", store, file())
	check.Equal(t, "trusted after a start", third.policies.Snapshot().For("shop").Trusted, false)
	check.Equal(t, "version", third.policies.Snapshot().Version(), 1)
}

// TestLockOutByAnEnd: a change is also refused if the end of a temporary change would lock out an
// operator's client.
func TestLockOutByAnEnd(t *testing.T) {
	w := newWorld(t)
	daily := `{"default":{"client":[{"name":"daily","requests":1,"window":"24h"}]}}`
	refused := func(a answer) {
		t.Helper()
		a.is(http.StatusConflict).says("after the temporary value ends at 2026-03-01T1").says("after the temporary value ends at ").says(`lock out the admin client "ops"`)
	}
	w.put("/policies/ops?for=2h", `{"trusted":true}`).is(http.StatusOK)
	refused(w.patch("/settings", daily))
	w.put("/policies/ops", `{"trusted":true}`).is(http.StatusOK)
	w.patch("/settings", daily).is(http.StatusOK)

	other := newWorld(t)
	other.patch("/settings?for=1h", `{"mode":"dry_run"}`).is(http.StatusOK)
	refused(other.put("/policies/ops", `{"client":[{"name":"daily","requests":1,"window":"24h"}]}`))
}

// TestLockOutBetweenEnds: a change is also refused if an operator's client would be locked out only
// between two ends.
func TestLockOutBetweenEnds(t *testing.T) {
	const daily = `{"default":{"client":[{"name":"daily","requests":1,"window":"24h"}]}}`
	const between = "after the temporary value ends at 2026-03-01T12:01:00Z"
	w := newWorld(t)
	w.put("/policies/ops?for=1m", `{"trusted":true}`).is(http.StatusOK)
	w.patch("/settings?for=2h", daily).is(http.StatusConflict).says(between).says(`lock out the admin client "ops"`)
	w.patch("/settings?for=1m", daily).is(http.StatusOK)

	// The client gets a tier back later, which is not in force for it now.
	w = newWorld(t)
	w.put("/tiers/gold", `{"client":[{"requests":42}]}`).is(http.StatusOK)
	w.put("/policies/ops", `{"tier":"gold"}`).is(http.StatusOK)
	w.put("/policies/ops?for=1m", `{"trusted":true}`).is(http.StatusOK)
	w.put("/tiers/gold", `{"client":[{"name":"daily","requests":1,"window":"24h"}]}`).is(http.StatusConflict).says(between)
	w.put("/policies/ops", `{"tier":"gold","trusted":true}`).is(http.StatusOK)
	w.put("/tiers/gold", `{"client":[{"name":"daily","requests":1,"window":"24h"}]}`).is(http.StatusOK)

	// Making it temporary again counts as changing it.
	w = newWorld(t)
	w.put("/policies/ops?for=1h", `{"trusted":true}`).is(http.StatusOK)
	w.changes("", `{"changes":[{"target":"policies/ops","value":{"trusted":true}}]}`).is(http.StatusOK)
	w.patch("/settings", daily).is(http.StatusOK)
	w.undo("2/undo").is(http.StatusConflict).says("after the temporary value ends at ")
}

// TestLockOutAtOtherInstances: the mode of a single instance does not justify a change that locks
// operators out at the others.
func TestLockOutAtOtherInstances(t *testing.T) {
	const daily = `{"client":[{"name":"daily","requests":1,"window":"24h"}]}`
	for instance, global := range map[ratelimit.Mode]ratelimit.Mode{
		ratelimit.DryRun: ratelimit.Enforce, ratelimit.Off: ratelimit.Enforce, ratelimit.Enforce: ratelimit.DryRun,
	} {
		base := file()
		base.Instance, base.Mode = instance, global
		w := newInstance(t, "i-1", openStore(t), base)
		w.put("/policies/ops", daily).is(http.StatusConflict).says(`lock out the admin client "ops"`)
	}
}

// TestChangeThatKeepsAnEndFromHappening: a change that prevents a temporary change from ending is
// refused, with the field and advice. TestCheckEnds (internal/clientcfg) has the cases.
func TestChangeThatKeepsAnEndFromHappening(t *testing.T) {
	w := newWorld(t)
	w.put("/tiers/gold?for=1h", `{"user":[{"requests":42}]}`).is(http.StatusOK)
	for _, query := range []string{"", "?validate=true", "?for=2h"} {
		a := w.put("/policies/shop"+query, `{"tier":"gold"}`).is(http.StatusUnprocessableEntity).has("errors.0.field=tiers.gold")
		a.says("is the tier of 1 client: shop; first give them another one, or none, after the temporary value ends at 2026-03-01T13:00:00Z")
	}
	w.put("/policies/shop?for=1h", `{"tier":"gold"}`).is(http.StatusOK)
	w.patch("/policies/shop", `{"note":"it lasts"}`).is(http.StatusUnprocessableEntity).says("after the temporary value ends at 2026-03-01T13:00:00Z")
}

// TestLockOutByAChangeThatLasts: the check uses the state in which the change is permanent, not the
// one after its former end.
func TestLockOutByAChangeThatLasts(t *testing.T) {
	w := newWorld(t)
	w.put("/policies/ops", `{"trusted":true}`).is(http.StatusOK)
	w.patch("/settings", `{"default":{"client":[{"name":"daily","requests":1,"window":"24h"}]}}`).is(http.StatusOK)
	w.patch("/settings?for=1h", `{"mode":"dry_run"}`).is(http.StatusOK)
	w.put("/policies/ops?for=30m", `{"trusted":false}`).is(http.StatusOK)
	w.patch("/policies/ops", `{"note":"it lasts"}`).is(http.StatusConflict).says("after the temporary value ends at 2026-03-01T13:00:00Z")
}
