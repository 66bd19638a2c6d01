package admin_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"oauth-server/internal/check"
)

// Tiers and overrides are changed, undone and ended like everything else.
func TestTiersAndOverridesInOneChange(t *testing.T) {
	w := newWorld(t)
	body := `{"changes":[{"target":"policies/shop","value":{"tier":"gold"}},{"target":"overrides/shop ada","value":{"user":[{"requests":1}]}},` +
		`{"target":"tiers/gold","value":{"user":[{"requests":42}]}}]}`
	w.changes("", body).is(http.StatusOK)
	equal(t, "shop", w.policies.Snapshot().For("shop").User.All()[0].Requests, 42)
	a := w.get("/changes")
	var targets []string
	for _, one := range a.at("targets").([]any) {
		targets = append(targets, fmt.Sprint(one.(map[string]any)["target"]))
	}
	check.Equal(t, "targets", targets, []string{"tiers/gold", "policies/shop", "overrides/shop ada"})
	equal(t, "again", len(w.changes("", body).is(http.StatusOK).at("changes").([]any)), 0)

	for bad, field := range map[string]string{
		`{"target":"tiers/a b","value":{}}`:                                 "changes[0].target",
		`{"target":"overrides/shop","value":{"user":[{"requests":1}]}}`:     "changes[0].target",
		`{"target":"overrides/shpo ada","value":{"user":[{"requests":1}]}}`: "changes[0].target",
		`{"target":"overrides/shop ada","value":{}}`:                        "changes[0].value.user",
	} {
		equal(t, bad, w.changes("", `{"changes":[`+bad+`]}`).is(http.StatusUnprocessableEntity).at("errors", 0, "field"), any(field))
	}
	w.changes("", `{"changes":[{"target":"tiers/gold","value":null}]}`).is(http.StatusUnprocessableEntity) // shop has it

	w.put("/tiers/gold?for=1h", `{"user":[{"requests":50}]}`).is(http.StatusOK)
	equal(t, "until", w.get("/changes").at("targets", 0, "until"), any("2026-03-01T13:00:00Z"))
	w.change("DELETE", "/policies/shop/users/ada?for=1h", "").is(http.StatusNoContent)
	w.clock.Advance(time.Hour + later)
	check.OK(t, w.api.EndChanges(t.Context()))
	check.Equal(t, "as before", w.get("/changes").at("targets"), a.at("targets"))
	w.undo("1/undo").is(http.StatusConflict)
	w.change("DELETE", "/policies/shop", "").is(http.StatusNoContent)
	w.undo("6/undo").is(http.StatusOK)
	check.Equal(t, "undone", w.get("/changes").at("targets"), a.at("targets"))
}

// A tier that was made for a while and is in use when it is to go stays until it is not; nothing else waits.
func TestTemporaryTierInUse(t *testing.T) {
	w := newWorld(t)
	w.changes("", `{"for":"1h","changes":[{"target":"tiers/gold","value":{"user":[{"requests":42}]}}]}`).is(http.StatusOK)
	w.put("/policies/shop", `{"tier":"gold"}`).is(http.StatusOK)
	w.patch("/policies/app?for=1h", `{"trusted":true}`).is(http.StatusOK)
	set := w.get("/changes") // the tier stays, so it returns to what it is; nothing else is concerned
	equal(t, "what the tier returns to", set.at("targets", 0, "returns_to", "user", 0, "requests"), any(42.0))
	equal(t, "temporary too", set.at("targets", 1, "target"), any("policies/app"))
	equal(t, "what the policy returns to", set.at("targets", 1, "returns_to"), nil)
	w.clock.Advance(time.Hour + later)
	check.ErrorSays(t, w.api.EndChanges(t.Context()), "tiers.gold")
	equal(t, "app", w.policies.Snapshot().For("app").Trusted, false)
	w.change("DELETE", "/policies/shop", "").is(http.StatusNoContent)
	check.OK(t, w.api.EndChanges(t.Context()))
	equal(t, "targets", len(w.get("/changes").at("targets").([]any)), 0)
}
