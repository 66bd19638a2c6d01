package admin_test

import (
	"fmt"
	"net/http"
	"testing"

	"oauth-server/internal/ratelimit"
)

// TestCriticality: it is shown with the resource that sets it, and among the values in force. A
// trusted client may have one.
func TestCriticality(t *testing.T) {
	w := newWorld(t)
	equal(t, "of all clients", w.get("/settings").at("default", "criticality"), nil)
	equal(t, "what applies", w.get("/policies/shop").at("effective", "criticality"), nil)
	w.create("/tiers/gold", `{"criticality":"sheddable_plus"}`).is(http.StatusOK)
	equal(t, "of the tier", w.get("/tiers/gold").at("criticality"), any("sheddable_plus"))
	w.patch("/policies/shop", `{"tier":"gold","trusted":true}`).is(http.StatusOK)
	equal(t, "what applies", w.get("/policies/shop").at("effective", "criticality"), any("sheddable_plus"))
	equal(t, "of the policy", w.get("/policies/shop").at("criticality"), nil)
	a := w.patch("/policies/shop", `{"criticality":"critical_plus"}`).is(http.StatusOK)
	equal(t, "of the policy", a.at("criticality"), any("critical_plus"))
	equal(t, "what applies", a.at("effective", "criticality"), any("critical_plus"))
	a = w.patch("/settings", `{"default":{"criticality":"sheddable"}}`).is(http.StatusOK)
	equal(t, "of all clients", a.at("default", "criticality"), any("sheddable"))
	equal(t, "changed", fmt.Sprint(a.at("meta", "changed")), "[default.criticality]")
	equal(t, "what applies", w.get("/policies/app").at("effective", "criticality"), any("sheddable"))
	equal(t, "as it is read before a request", w.policies.Snapshot().For("app").Criticality, ratelimit.Sheddable)
	a = w.patch("/policies/shop", `{"criticality":null}`).is(http.StatusOK)
	equal(t, "what applies, taken back", a.at("effective", "criticality"), any("sheddable_plus"))
	a = w.patch("/settings", `{"default":{"criticality":null}}`).is(http.StatusOK)
	equal(t, "of all clients, taken back", a.at("default", "criticality"), nil)
	equal(t, "what applies", w.get("/policies/app").at("effective", "criticality"), nil)
}

// TestCriticalityThatIsNone: the error lists the valid names once, among all other problems.
func TestCriticalityThatIsNone(t *testing.T) {
	w := newWorld(t)
	const names = `"critical_plus", "critical", "sheddable_plus", "sheddable"`
	a := w.patch("/policies/shop", `{"note":7,"criticality":"high","ban":"on"}`).is(http.StatusUnprocessableEntity)
	equal(t, "errors", fieldsOf(a), "note criticality ban")
	equal(t, "detail", a.at("errors", 1, "detail"), any(`"high" is none of `+names))
	a = w.patch("/settings", `{"default":{"criticality":"","hide_headers":5}}`).is(http.StatusUnprocessableEntity)
	equal(t, "errors", fieldsOf(a), "default.hide_headers default.criticality")
	equal(t, "detail", a.at("errors", 1, "detail"), any(`"" is none of `+names+"; leave it out, or set it to null, to have none of its own"))
}

// TestCandidateWithACriticality: it is not tried, and takes effect together with the limits. Values
// that the candidate does not set stay.
func TestCandidateWithACriticality(t *testing.T) {
	for name, tc := range map[string]struct{ candidate, live, before, below string }{
		"client":  {"/candidates/shop", "/policies/shop", `{"criticality":"sheddable"}`, ""},
		"default": {"/candidates/_default", "/settings", `{"default":{"criticality":"sheddable"}}`, "default"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			of := func(a answer) any {
				if tc.below != "" {
					return a.at(tc.below, "criticality")
				}
				return a.at("criticality")
			}
			w.patch(tc.live, tc.before).is(http.StatusOK)
			w.put(tc.candidate, `{"client":[{"requests":3}]}`).is(http.StatusOK)
			equal(t, "in force, of a candidate without", of(w.change("POST", tc.candidate+"/promote", "").is(http.StatusOK)), any("sheddable"))
			since := w.put(tc.candidate, `{"client":[{"requests":3}]}`).is(http.StatusOK).at("since")
			w.clock.Advance(1e9)
			a := w.patch(tc.candidate, `{"criticality":"critical"}`).is(http.StatusOK)
			equal(t, "of the candidate", a.at("criticality"), any("critical"))
			equal(t, "since, as the same limits are tried", a.at("since"), since)
			equal(t, "in force while it is tried", of(w.get(tc.live)), any("sheddable"))
			equal(t, "in force", of(w.change("POST", tc.candidate+"/promote", "").is(http.StatusOK)), any("critical"))
		})
	}
}
