package admin_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"oauth-server/internal/check"
)

// TestTiersAndOverridesInOneChange: tiers and overrides are changed, undone and ended like
// everything else.
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
	w.clock.Advance(time.Hour)
	check.OK(t, w.policies.End(t.Context()))
	check.Equal(t, "as before", w.get("/changes").at("targets"), a.at("targets"))
	w.undo("1/undo?validate=true").is(http.StatusOK)
	w.change("DELETE", "/policies/shop", "").is(http.StatusNoContent)
	w.undo("4/undo").is(http.StatusOK)
	check.Equal(t, "undone", w.get("/changes").at("targets"), a.at("targets"))
}
