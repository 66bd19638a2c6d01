package admin_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestTotalIsChangedAndInForce: a total is set over the API, counted over all users and the client
// itself, listed and reset.
func TestTotalIsChangedAndInForce(t *testing.T) {
	w := newWorld(t)
	a := w.put("/policies/shop", `{"user":[{"requests":5}],"total":[{"name":"all-users","requests":7}]}`).is(http.StatusOK)
	equal(t, "set", a.at("total", 0, "requests"), any(7.0))
	equal(t, "in force", a.at("effective", "total", 0, "name"), any("all-users"))
	equal(t, "of ada", w.ask("shop", "ada", 8), 5)
	equal(t, "of the client itself", w.ask("shop", "", 1), 1)
	equal(t, "of bob", w.ask("shop", "bob", 3), 1)
	equal(t, "of another client", w.ask("app", "bob", 3), 3)
	a = w.get("/clients/shop/counters")
	equal(t, "counters", len(a.at("counters").([]any)), 4)
	var totals int
	for i := range 4 {
		if name := a.at("counters", i, "limit", "name"); name == any("all-users") {
			totals++
			equal(t, "is a total", a.at("counters", i, "total"), any(true))
			equal(t, "user", a.at("counters", i, "username"), nil)
			equal(t, "estimate", a.at("counters", i, "estimate"), any(7.0))
		}
	}
	equal(t, "totals", totals, 1)
	equal(t, "in the list of those nearest their limits", w.get("/top").at("near_limit", 0, "usage"), any(1.0))
	w.change("DELETE", "/clients/shop/counters?username=%20total", "").is(http.StatusNoContent)
	equal(t, "after a reset", w.ask("shop", "bob", 9), 4)

	w.put("/tiers/gold", `{"total":[{"name":"of-gold","requests":100}]}`).is(http.StatusOK)
	equal(t, "of the tier", w.put("/policies/app", `{"tier":"gold"}`).is(http.StatusOK).at("effective", "total", 0, "name"), any("of-gold"))
	w.patch("/settings", `{"default":{"total":[{"name":"of-all","requests":500}]}}`).is(http.StatusOK)
	equal(t, "of all clients", w.get("/policies/ops").at("effective", "total", 0, "name"), any("of-all"))
}

// TestTotalIsRefused: all invalid values are reported at once, with their fields.
func TestTotalIsRefused(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/policies/shop", "/tiers/gold", "/candidates/shop"} {
		a := w.put(path, `{"user":[{"requests":50}],"total":[{"name":"x","requests":49},{"requests":60},{"name":"z","strict":true,"on_outage":"deny","lease_wait":"50ms"}]}`).is(http.StatusUnprocessableEntity)
		equal(t, path, fieldsOf(a), "total[1].name total[2].strict total[0].requests total[1].name")
	}
	equal(t, "an empty list", w.put("/policies/shop", `{"total":[]}`).is(http.StatusUnprocessableEntity).at("errors", 0, "field"), any("total"))
}

// TestTotalIsTried: a candidate may have only a total, and all requests of the client are tried
// against it.
func TestTotalIsTried(t *testing.T) {
	w := newWorld(t)
	w.put("/candidates/shop", `{"total":[{"name":"all","requests":4}]}`).is(http.StatusOK)
	equal(t, "passed", w.ask("shop", "ada", 3)+w.ask("shop", "bob", 3)+w.ask("shop", "", 3), 9)
	a := w.get("/candidates/shop")
	equal(t, "tried", a.at("activity", "tried"), any(9.0))
	equal(t, "would be denied", a.at("activity", "candidate_would_deny"), any(5.0))
	w.change("POST", "/candidates/shop/promote", "").is(http.StatusOK)
	equal(t, "live", w.get("/policies/shop").at("effective", "total", 0, "requests"), any(4.0))
	w.clock.Advance(time.Minute)
	equal(t, "passed", w.ask("shop", "ada", 3)+w.ask("shop", "bob", 3), 4)
}

// TestEffectOfATotal: a new total has no figures to compare with. A lowered one is compared with
// its peak.
func TestEffectOfATotal(t *testing.T) {
	w := newWorld(t)
	w.ask("shop", "ada", 10)
	set := `{"total":[{"name":"all","requests":100}]}`
	if s := w.summary("PUT", "/policies/shop", set); !strings.Contains(s, "no counter shows 100 requests in 60s; try a candidate first") {
		t.Error(s)
	}
	w.put("/policies/shop", set).is(http.StatusOK)
	w.ask("shop", "ada", 20)
	w.ask("shop", "bob", 20)
	lower := func(n string) string {
		s, _, _ := strings.Cut(w.summary("PUT", "/policies/shop", `{"user":[{"requests":30}],"total":[{"name":"all","requests":`+n+`}]}`), ": ")
		return strings.TrimSuffix(s, young)
	}
	equal(t, "below the peak", lower("39"), wouldDeny+"requests of 1 of 1 active client")
	equal(t, "at the peak", lower("40"), wouldDeny+"no request of 1 active client.")
	equal(t, "higher", w.summary("PUT", "/policies/shop", `{"total":[{"name":"all","requests":200}]}`), notWidened)
}
