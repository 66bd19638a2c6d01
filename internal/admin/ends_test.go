package admin_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/repositories"
	"oauth-server/internal/store/mongo"
	"oauth-server/internal/store/mongo/mongotest"
)

// later is past the moment when every instance tries to end a due change.
const later = 2 * time.Second

func TestTemporaryChangeIsShownAndEnds(t *testing.T) {
	w := newWorld(t)
	w.put("/policies/shop", `{"client":[{"requests":9}]}`).is(http.StatusOK)
	end := "2026-03-01T14:00:00Z"
	a := w.put("/policies/shop?validate=true&for=2h", `{"client":[{"requests":3}]}`).is(http.StatusOK)
	equal(t, "rehearsed", a.at("until"), any(end))
	a = w.put("/policies/shop?for=2h", `{"client":[{"requests":3}]}`).is(http.StatusOK)
	equal(t, "answered", a.at("meta", "until"), any(end))
	equal(t, "shown", w.get("/policies/shop").at("meta", "until"), any(end))
	equal(t, "listed", w.get("/clients?prefix=shop").at("clients", 0, "until"), any(end))
	equal(t, "in the trail", w.get("/audit").at("entries", 0, "until"), any(end))
	equal(t, "set", w.get("/changes").at("targets", 0, "until"), any(end))
	equal(t, "returns to", w.get("/changes").at("targets", 0, "returns_to", "client", 0, "requests"), any(9.0))
	a = w.patch("/policies/shop?validate=true", `{"note":"x"}`).is(http.StatusOK)
	equal(t, "replaces", a.at("was_until"), any(end))
	w.put("/policies/shop?for=1s", `{}`).is(http.StatusUnprocessableEntity)
	w.put("/policies/shop?for=", `{}`).is(http.StatusUnprocessableEntity).says("must be from 1m to 30d")
	w.changes("", `{"for":"","changes":[{"target":"policies/shop","value":null}]}`).is(http.StatusUnprocessableEntity).says("must be from 1m to 30d")

	w.clock.Advance(2*time.Hour - time.Second)
	check.OK(t, w.api.EndChanges(t.Context()))
	equal(t, "not yet", w.policies.Snapshot().Version(), 2)
	w.clock.Advance(later + time.Second)
	check.OK(t, w.api.EndChanges(t.Context()))
	equal(t, "limit", w.policies.Snapshot().For("shop").Client.All()[0].Requests, 9)
	equal(t, "until", w.get("/policies/shop").at("meta", "until"), nil)
	e := w.newest()
	equal(t, "entry", e.Actor.ClientID+" "+e.Action+" "+e.Target+" "+e.Reason, "ops end policies/shop change 2")
	check.OK(t, w.api.EndChanges(t.Context()))
	equal(t, "once", w.policies.Snapshot().Version(), 3)
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
	equal(t, "until", w.get("/settings").at("meta", "until"), any("2026-03-01T13:00:00Z"))
	equal(t, "until", w.get("/candidates/shop").at("meta", "until"), any("2026-03-01T13:00:00Z"))
	equal(t, "what returns", w.get("/changes").at("targets", 2, "returns_to", "trusted"), any(true))
	w.clock.Advance(time.Hour + later)
	check.OK(t, w.api.EndChanges(t.Context()))
	check.Equal(t, "set", w.get("/changes").at("targets"), before)
	equal(t, "four changes and their ends", w.policies.Snapshot().Version(), 10)
}

// TestEndLeavesWhatWasChanged: a target that was changed in between stays as it is, and the entry
// of the end says so.
func TestEndLeavesWhatWasChanged(t *testing.T) {
	w := newWorld(t)
	w.changes("", `{"for":"1h","changes":[{"target":"policies/shop","value":{"trusted":true}},{"target":"policies/app","value":{"trusted":true}}]}`).is(http.StatusOK)
	w.patch("/policies/app", `{"note":"stays"}`).is(http.StatusOK)
	w.clock.Advance(time.Hour + later)
	check.OK(t, w.api.EndChanges(t.Context()))
	equal(t, "shop", w.policies.Snapshot().For("shop").Trusted, false)
	equal(t, "app", w.policies.Snapshot().For("app").Trusted, true)
	equal(t, "reason", w.newest().Reason, "change 1; left as it is: policies/app since change 2")
	equal(t, "target", w.newest().Target, "policies/shop")

	w.patch("/policies/shop?for=1h", `{"trusted":true}`).is(http.StatusOK)
	w.change("DELETE", "/policies/shop", "").is(http.StatusNoContent)
	w.clock.Advance(time.Hour + later)
	check.OK(t, w.api.EndChanges(t.Context()))
	equal(t, "entry", w.newest().Target+" "+w.newest().Reason, "policies/shop change 4; left as it is: policies/shop since change 5")
}

// TestOneInstanceEndsIt: if three instances find the end due at once, one entry ends it and all
// follow. Restarts forget nothing, even if the entry is swept.
func TestOneInstanceEndsIt(t *testing.T) {
	t.Run("embedded", func(t *testing.T) { oneInstanceEndsIt(t, openStore(t)) })
	t.Run("MongoDB", func(t *testing.T) {
		uri, database := mongotest.Database(t)
		store, err := mongo.Open(t.Context(), mongo.Options{URI: uri, Database: database})
		check.OK(t, err)
		_, err = store.Migrate(t.Context())
		check.OK(t, err)
		t.Cleanup(func() { check.OK(t, store.Close()) })
		all, err := repositories.On(t.Context(), store)
		check.OK(t, err)
		oneInstanceEndsIt(t, sharedOn(t, repositories.Store{Backend: store, All: all}))
	})
}

func oneInstanceEndsIt(t *testing.T, store *shared) {
	t.Helper()
	first := newInstance(t, "i-1", store, file())
	first.patch("/policies/shop?for=30d", `{"trusted":true}`).is(http.StatusOK)
	first.clock.Advance(30*24*time.Hour + later)
	check.OK(t, store.AddEvent(t.Context(), clientcfg.Event{Action: "x", At: first.clock.Now()})) // the newest entry stays
	check.OK(t, store.SweepEvents(t.Context(), first.clock.Now(), first.clock.Now()))
	instances := []*instance{first}
	for _, name := range []string{"i-2", "i-3"} {
		w := newInstance(t, name, store, file())
		w.clock.Advance(30*24*time.Hour + later)
		instances = append(instances, w)
	}
	for _, w := range instances {
		equal(t, "trusted before", w.policies.Snapshot().For("shop").Trusted, true)
	}
	var all sync.WaitGroup
	for _, w := range instances {
		all.Go(func() {
			if err := w.api.EndChanges(t.Context()); err != nil {
				t.Errorf("%s: %v", w.name, err)
			}
		})
	}
	all.Wait()
	for _, w := range instances {
		check.OK(t, w.follower.Refresh(t.Context()))
		equal(t, "trusted on "+w.name, w.policies.Snapshot().For("shop").Trusted, false)
		equal(t, "version on "+w.name, w.policies.Snapshot().Version(), 3)
	}
}

// TestEndWaitsForTheStore: while the store is unreachable nothing ends. It ends afterwards.
func TestEndWaitsForTheStore(t *testing.T) {
	w := newWorld(t)
	w.patch("/policies/shop?for=1h", `{"trusted":true}`).is(http.StatusOK)
	w.clock.Advance(time.Hour + later)
	check.OK(t, w.store.Close())
	check.ErrorSays(t, w.api.EndChanges(t.Context()), "end a temporary change")
	equal(t, "trusted", w.policies.Snapshot().For("shop").Trusted, true)
}

// TestEndThatIsNotValid: a change with an invalid end does not keep others from ending, and ends
// once its target is changed.
func TestEndThatIsNotValid(t *testing.T) {
	for _, value := range []string{`{"user":[{"requests":0}]}`, `{"of_a_later_release":1}`} {
		w := newWorld(t)
		w.store.change(t, clientcfg.Change{Target: "policies/shop", After: []byte(`{"trusted":true}`)},
			clientcfg.Change{Target: "ends/policies/shop", After: []byte(`{"until":"2026-03-01T12:30:00Z","change":1,"actor":{"client_id":"ops"},"value":` + value + `}`)})
		w.patch("/policies/app?for=1h", `{"trusted":true}`).is(http.StatusOK)
		w.clock.Advance(time.Hour + later)
		check.ErrorSays(t, w.api.EndChanges(t.Context()), "end policies/shop")
		equal(t, "shop", w.policies.Snapshot().For("shop").Trusted, true)
		equal(t, "app", w.policies.Snapshot().For("app").Trusted, false)
		w.patch("/policies/shop", `{"note":"x"}`).is(http.StatusOK)
		check.OK(t, w.api.EndChanges(t.Context()))
		equal(t, "reason", w.newest().Reason, "change 1; left as it is: policies/shop since change 4")
	}
}

// TestLockOutByAnEnd: a change is also refused if the end of a temporary change would lock out an
// operator's client.
func TestLockOutByAnEnd(t *testing.T) {
	w := newWorld(t)
	daily := `{"default":{"client":[{"name":"daily","requests":1,"window":"24h"}]}}`
	refused := func(a answer) {
		t.Helper()
		a.is(http.StatusConflict).says("when what is temporary until 2026-03-01T1").says("has ended: ").says(`lock out the admin client "ops"`)
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
	const between = "when what is temporary until 2026-03-01T12:01:00Z has ended"
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
	w.undo("2/undo").is(http.StatusConflict).says("has ended")
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
