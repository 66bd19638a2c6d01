package admin_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
)

// TestChangeThatKeepsAnEndFromHappening: a change that prevents a temporary change from ending is
// refused, with the field and advice.
func TestChangeThatKeepsAnEndFromHappening(t *testing.T) {
	gold, tiered := `{"user":[{"requests":42}]}`, `{"tier":"gold"}`
	w := newWorld(t)
	refused := func(a answer, field, says string) {
		t.Helper()
		equal(t, "field", a.is(http.StatusUnprocessableEntity).at("errors", 0, "field"), any(field))
		a.says(says)
	}

	// A policy would keep a tier that is removed at its end.
	w.put("/tiers/gold?for=1h", gold).is(http.StatusOK)
	for _, query := range []string{"", "?validate=true", "?for=2h"} {
		refused(w.put("/policies/shop"+query, tiered), "clients.shop.tier", "is temporary, until 2026-03-01T13:00:00Z")
	}
	w.put("/policies/shop?for=1h", tiered).is(http.StatusOK)
	refused(w.patch("/policies/shop", `{"note":"it lasts"}`), "clients.shop.tier", "let the policy end no later")
	refused(w.put("/tiers/gold?for=30m", gold), "clients.shop.tier", "is temporary, until 2026-03-01T12:30:00Z")
	w.put("/tiers/gold", gold).is(http.StatusOK)
	w.put("/policies/shop", tiered).is(http.StatusOK)

	// A policy would return to a missing tier.
	w.put("/tiers/silver", gold).is(http.StatusOK)
	w.put("/policies/shop?for=1h", `{"tier":"silver"}`).is(http.StatusOK)
	for _, query := range []string{"", "?for=2h"} {
		refused(w.change("DELETE", "/tiers/gold"+query, ""), "tiers.gold", `policies/shop returns to the tier "gold" at 2026-03-01T13:00:00Z, when that would not be there: undo change 6, or`)
	}
	w.change("DELETE", "/tiers/gold?for=30m", "").is(http.StatusNoContent) // the tier will be back before
	refused(w.put("/policies/shop?for=20m", `{"tier":"silver"}`), "tiers.gold", "let this change end later, or last")
	w.changes("", `{"changes":[{"target":"policies/shop","value":{"tier":"silver"}},{"target":"tiers/gold","value":null}]}`).is(http.StatusOK)

	w.clock.Advance(2*time.Hour + later)
	check.OK(t, w.api.EndChanges(t.Context()))
	equal(t, "overdue", w.policies.Snapshot().Overdue(w.clock.Now()), 0)
}

// TestOneStuckTargetHoldsBackNoOther: an earlier release let a client keep a tier that will be
// removed. Everything else of the temporary change ends, and the tier ends when it can.
func TestOneStuckTargetHoldsBackNoOther(t *testing.T) {
	w := newWorld(t)
	w.changes("", `{"for":"1h","changes":[{"target":"tiers/gold","value":{"user":[{"requests":42}]}},`+
		`{"target":"policies/app","value":{"tier":"gold"}},{"target":"settings","value":{"mode":"off"}}]}`).is(http.StatusOK)
	value := []byte(`{"tier":"gold"}`)
	w.store.change(t, clientcfg.Change{Target: "policies/shop", After: value})
	w.clock.Advance(time.Hour + later)
	check.ErrorSays(t, w.api.EndChanges(t.Context()), "tiers/gold")
	p := w.policies.Snapshot()
	equal(t, "mode", string(p.Settings().Mode), "enforce")
	equal(t, "app", p.For("app").Tier, "")
	equal(t, "shop", p.For("shop").Tier, "gold")
	equal(t, "entry", w.newest().Action+" "+w.newest().Target+" "+w.newest().Reason, "end policies/app change 1")
	equal(t, "not yet overdue", w.policies.Snapshot().Overdue(w.clock.Now()), 0)
	w.clock.Advance(10 * time.Second)
	equal(t, "overdue", w.policies.Snapshot().Overdue(w.clock.Now()), 1)
	equal(t, "what it returns to", w.get("/changes").at("targets", 0, "returns_to", "user", 0, "requests"), any(42.0))
	err := w.api.EndChanges(t.Context())
	check.ErrorSays(t, err, "is the tier of 1 client: shop")
	equal(t, "lines of the error", strings.Count(err.Error(), "\n"), 0)
	equal(t, "entries", p.Version(), w.policies.Snapshot().Version())

	w.change("DELETE", "/policies/shop", "").is(http.StatusNoContent)
	check.OK(t, w.api.EndChanges(t.Context()))
	equal(t, "overdue", w.policies.Snapshot().Overdue(w.clock.Now()), 0)
	equal(t, "targets", len(w.get("/changes").at("targets").([]any)), 0)
}

// TestStuckEndsAskNoStore: there is nothing to append, so the store is not needed.
func TestStuckEndsAskNoStore(t *testing.T) {
	w := newWorld(t)
	value := `{"until":"2026-03-01T12:30:00Z","change":1,"actor":{"client_id":"ops"},"value":{"tier":"gold"}}`
	w.store.change(t, clientcfg.Change{Target: "policies/shop", After: []byte("{}")}, clientcfg.Change{Target: "ends/policies/shop", After: []byte(value)})
	check.OK(t, w.follower.Refresh(t.Context()))
	check.OK(t, w.store.Close())
	w.clock.Advance(time.Hour + later)
	check.ErrorSays(t, w.api.EndChanges(t.Context()), "admin: end policies/shop: ")
}

// TestLockOutByAChangeThatLasts: the check uses the state in which the change is permanent, not the
// one after its former end.
func TestLockOutByAChangeThatLasts(t *testing.T) {
	w := newWorld(t)
	w.put("/policies/ops", `{"trusted":true}`).is(http.StatusOK)
	w.patch("/settings", `{"default":{"client":[{"name":"daily","requests":1,"window":"24h"}]}}`).is(http.StatusOK)
	w.patch("/settings?for=1h", `{"mode":"dry_run"}`).is(http.StatusOK)
	w.put("/policies/ops?for=30m", `{"trusted":false}`).is(http.StatusOK)
	w.patch("/policies/ops", `{"note":"it lasts"}`).is(http.StatusConflict).says("when what is temporary until 2026-03-01T13:00:00Z has ended")
}
