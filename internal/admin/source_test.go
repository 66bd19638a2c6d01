package admin_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

const (
	home      = "192.0.2.7"
	elsewhere = "2001:db8:0:7::/64"
)

// TestSourceIsChangedAndInForce: a limit by source is set over the API, counted by address over all
// users, listed and reset.
func TestSourceIsChangedAndInForce(t *testing.T) {
	w := newWorld(t)
	w.put("/policies/shop", `{"user":[{"requests":5}],"source":[{"name":"per-address","requests":7}]}`).is(http.StatusOK).has(
		"source.0.requests=7", "effective.source.0.name=per-address")
	check.Equal(t, "of ada", w.askAs("shop", "ada", 0, home, 8), 5)
	check.Equal(t, "of the client itself", w.askAs("shop", "", 0, home, 1), 1)
	check.Equal(t, "of bob", w.askAs("shop", "bob", 0, home, 3), 1)
	check.Equal(t, "of bob elsewhere", w.askAs("shop", "bob", 0, elsewhere, 3), 3)
	check.Equal(t, "of another client", w.askAs("app", "bob", 0, home, 3), 3)
	counts := map[any]any{}
	a := w.get("/clients/shop/counters")
	for i := range a.at("counters").([]any) {
		if source, is := a.at("counters", i).(map[string]any)["source"]; is {
			check.Equal(t, "user", a.at("counters", i, "username"), nil)
			check.Equal(t, "limit", a.at("counters", i, "limit", "name"), any("per-address"))
			counts[source] = a.at("counters", i, "estimate")
		}
	}
	check.Equal(t, "sources", len(counts), 2)
	check.Equal(t, "at home", counts[home], any(7.0))
	check.Equal(t, "away", counts[elsewhere], any(3.0))
	near, inTop := w.get("/top").at("near_limit").([]any), 0
	for _, k := range near {
		if k.(map[string]any)["source"] != nil {
			inTop++
		}
	}
	check.Equal(t, "sources in the list of those nearest their limits", inTop, 2)
	w.change("DELETE", "/clients/shop/counters?username="+url.QueryEscape(ratelimit.SourceUser+home), "").is(http.StatusNoContent)
	check.Equal(t, "after a reset", w.askAs("shop", "bob", 0, home, 9), 1)
	byAddress := "/clients/shop/counters?username=" + url.QueryEscape(ratelimit.SourceUser+"2001:db8:0:7::9")
	w.get(byAddress).has("counters.0.source=" + elsewhere)
	w.change("DELETE", byAddress, "").is(http.StatusNoContent)
	w.get(byAddress).has("counters.#=0")
	for _, name := range []string{ratelimit.SourceUser + "2001:db8::/48", ratelimit.SourceUser + "x", "x\t\n99", ratelimit.SourceUser + "\x1b[31m", "\xff"} {
		path := "/clients/shop/counters?username=" + url.QueryEscape(name)
		check.Equal(t, name, fieldsOf(w.change("DELETE", path, "").is(http.StatusUnprocessableEntity)), "username")
		check.Equal(t, name, fieldsOf(w.send(request{method: "GET", path: path, token: reader}).is(http.StatusUnprocessableEntity)), "username")
	}

	w.put("/tiers/gold", `{"source":[{"name":"of-gold","requests":100}]}`).is(http.StatusOK)
	w.put("/policies/app", `{"tier":"gold"}`).is(http.StatusOK).has("effective.source.0.name=of-gold")
	w.patch("/settings", `{"default":{"source":[{"name":"of-all","requests":500}]}}`).is(http.StatusOK)
	w.get("/policies/ops").has("effective.source.0.name=of-all")
	w.patch("/settings", `{"note":"as before"}`).is(http.StatusOK).has("meta.changed.0=default.source")
}

// TestGrantsAreChanged: grants are set, read back as sent, used in a patch, and undone.
func TestGrantsAreChanged(t *testing.T) {
	w := newWorld(t)
	all := w.put("/policies/shop", `{"user":[{"requests":5}]}`).is(http.StatusOK)
	check.Equal(t, "of all grants", all.at("user", 0).(map[string]any)["grants"], nil)
	w.put("/policies/shop", `{"user":[{"requests":5,"grants":["password","refresh_token"]}]}`).is(http.StatusOK).has(
		"effective.user.0.grants.0=refresh_token", "effective.user.0.grants.1=password")
	w.patch("/policies/shop", `{"note":"as before"}`).is(http.StatusOK).has("user.0.grants.#=2")
	w.put("/policies/shop/users/ada", `{"user":[{"requests":9,"grants":["authorization_code"]}]}`).is(http.StatusOK).has(
		"user.0.grants.0=authorization_code")
}

// TestTotalIsChangedAndInForce: a total is set over the API, counted over all users and the client
// itself, listed and reset.
func TestTotalIsChangedAndInForce(t *testing.T) {
	w := newWorld(t)
	w.put("/policies/shop", `{"user":[{"requests":5}],"total":[{"name":"all-users","requests":7}]}`).is(http.StatusOK).has("total.0.requests=7",
		"effective.total.0.name=all-users")
	check.Equal(t, "of ada", w.ask("shop", "ada", 8), 5)
	check.Equal(t, "of the client itself", w.ask("shop", "", 1), 1)
	check.Equal(t, "of bob", w.ask("shop", "bob", 3), 1)
	check.Equal(t, "of another client", w.ask("app", "bob", 3), 3)
	a := w.get("/clients/shop/counters").has("counters.#=4")
	var totals int
	for i := range 4 {
		if name := a.at("counters", i, "limit", "name"); name == any("all-users") {
			totals++
			check.Equal(t, "is a total", a.at("counters", i, "total"), any(true))
			check.Equal(t, "user", a.at("counters", i, "username"), nil)
			check.Equal(t, "estimate", a.at("counters", i, "estimate"), any(7.0))
		}
	}
	check.Equal(t, "totals", totals, 1)
	w.get("/top").has("near_limit.0.usage=1")
	w.change("DELETE", "/clients/shop/counters?username=%20total", "").is(http.StatusNoContent)
	check.Equal(t, "after a reset", w.ask("shop", "bob", 9), 4)

	w.put("/tiers/gold", `{"total":[{"name":"of-gold","requests":100}]}`).is(http.StatusOK)
	w.put("/policies/app", `{"tier":"gold"}`).is(http.StatusOK).has("effective.total.0.name=of-gold")
	w.patch("/settings", `{"default":{"total":[{"name":"of-all","requests":500}]}}`).is(http.StatusOK)
	w.get("/policies/ops").has("effective.total.0.name=of-all")
}

// TestSharedListIsTried: a candidate may have only a total or a source, and all requests of the
// client are tried against it.
func TestSharedListIsTried(t *testing.T) {
	for list, denied := range map[string]int{"total": 5, "source": 2} { // a source counts those from home only
		t.Run(list, func(t *testing.T) {
			w := newWorld(t)
			of := func(n, more string) string {
				return `{"` + list + `":[{"name":"shared","requests":` + n + `}]` + more + `}`
			}
			w.put("/candidates/shop", of("4", "")).is(http.StatusOK)
			passed := w.askAs("shop", "ada", 0, home, 3) + w.askAs("shop", "bob", 0, home, 3) + w.askAs("shop", "", 0, elsewhere, 3)
			check.Equal(t, "passed", passed, 9)
			a := w.get("/candidates/shop").has("activity.tried=9")
			check.Equal(t, "would be denied", a.at("activity", "candidate_would_deny"), any(float64(denied)))
			promoted := func(n string) string {
				s, _, _ := strings.Cut(w.summary("PUT", "/policies/shop", of(n, "")), young)
				return s
			}
			check.Equal(t, "what was tried", promoted("4"),
				fmt.Sprint(wouldDeny, "requests of 1 of 1 active client: shop (", denied, " requests)."))
			check.Equal(t, "something else", promoted("3"),
				wouldDeny+"no request of 1 active client. It is unknown for 1: shop (no counter shows 3 requests in 60s; try a candidate first).")
			w.clock.Advance(time.Second)
			same := w.put("/candidates/shop", of("4", `,"note":"the same"`)).is(http.StatusOK)
			check.Equal(t, "the same is tried since", same.at("since"), a.at("since"))
			other := w.put("/candidates/shop", of("5", "")).is(http.StatusOK)
			check.Equal(t, "another is tried anew", other.at("since") != a.at("since"), true)
			w.put("/candidates/shop", of("4", "")).is(http.StatusOK)
			w.change("POST", "/candidates/shop/promote", "").is(http.StatusOK)
			check.Equal(t, "live", w.get("/policies/shop").at("effective", list, 0, "requests"), any(4.0))
			w.clock.Advance(time.Minute)
			check.Equal(t, "passed", w.askAs("shop", "ada", 0, home, 3)+w.askAs("shop", "bob", 0, home, 3), 4)
		})
	}
}

// TestEffectOfASharedList: a new total or source has no figures to compare with. A lowered one is
// compared with its peak, which for a source comes from the busiest address.
func TestEffectOfASharedList(t *testing.T) {
	for list, peak := range map[string]int{"total": 60, "source": 40} {
		t.Run(list, func(t *testing.T) {
			w := newWorld(t)
			w.askAs("shop", "ada", 0, home, 10)
			of := func(n int) string {
				return fmt.Sprintf(`{"user":[{"requests":50}],%q:[{"name":"shared","requests":%d}]}`, list, n)
			}
			if s := w.summary("PUT", "/policies/shop", of(100)); !strings.Contains(s, "no counter shows 100 requests in 60s; try a candidate first") {
				t.Error(s)
			}
			w.put("/policies/shop", of(100)).is(http.StatusOK)
			w.askAs("shop", "ada", 0, home, 20)
			w.askAs("shop", "bob", 0, home, 20)
			w.askAs("shop", "bob", 0, elsewhere, 20)
			lower := func(n int) string {
				s, _, _ := strings.Cut(w.summary("PUT", "/policies/shop", of(n)), ": ")
				return strings.TrimSuffix(s, young)
			}
			check.Equal(t, "below the peak", lower(peak-1), wouldDeny+"requests of 1 of 1 active client")
			check.Equal(t, "at the peak", lower(peak), wouldDeny+"no request of 1 active client.")
			check.Equal(t, "higher", w.summary("PUT", "/policies/shop", of(200)), notWidened)
		})
	}
}

// TestEffectOfASourceBesideACandidate: the denials of a candidate without a source are not used for
// a change that also enforces one.
func TestEffectOfASourceBesideACandidate(t *testing.T) {
	w := newWorld(t)
	const source = `"source":[{"name":"per-address","requests":5}]`
	const lists = `"user":[{"requests":50}],"client":[{"requests":50}]`
	w.put("/policies/shop", `{"mode":"dry_run",`+source+`}`).is(http.StatusOK)
	w.put("/candidates/shop", `{`+lists+`}`).is(http.StatusOK)
	w.askAs("shop", "ada", 0, home, 8)
	s := w.summary("PUT", "/policies/shop", `{"mode":"enforce",`+lists+`,`+source+`}`)
	check.Equal(t, "by the source", strings.HasPrefix(s, wouldDeny+"requests of 1 of 1 active client: shop (at least 1)."), true)
}

// TestEffectOfGrants: a limit that counts more grants than before denies more, and one that counts
// fewer does not. The peak of all grants is an upper bound for some of them.
func TestEffectOfGrants(t *testing.T) {
	w := newWorld(t)
	w.put("/policies/shop", `{"user":[{"requests":50}]}`).is(http.StatusOK)
	w.askAs("shop", "ada", ratelimit.GrantRefresh, home, 10)
	w.askAs("shop", "ada", ratelimit.GrantPassword, home, 5)
	effect := func(limits string) string {
		s, _, _ := strings.Cut(w.summary("PUT", "/policies/shop", `{"user":[`+limits+`]}`), young)
		return s
	}
	of := func(n, grants string) string { return `{"requests":` + n + `,"grants":` + grants + `}` }
	check.Equal(t, "of fewer grants", effect(of("50", `["refresh_token"]`)), notWidened+" Requests of authorization_code and password are no longer limited per user.")
	check.Equal(t, "not more than came of all", effect(of("15", `["refresh_token"]`)), wouldDeny+"no request of 1 active client.")
	if s := effect(of("14", `["refresh_token"]`)); !strings.Contains(s, "shop (no counter shows 14 requests of refresh_token in 60s; try a candidate first)") {
		t.Error(s)
	}

	w.put("/policies/shop", `{"user":[`+of("40", `["refresh_token"]`)+`,{"name":"all","requests":60}]}`).is(http.StatusOK)
	w.clock.Advance(20 * time.Minute)
	w.askAs("shop", "ada", ratelimit.GrantRefresh, home, 10)
	w.askAs("shop", "ada", ratelimit.GrantPassword, home, 5)
	rest := `,{"name":"all","requests":60}`
	check.Equal(t, "the same", effect(of("40", `["refresh_token"]`)+rest), notWidened)
	check.Equal(t, "more grants than came of one", effect(of("14", `["refresh_token","password"]`)+rest), wouldDeny+
		"no request of 1 active client. It is unknown for 1: shop (no counter shows 14 requests of refresh_token and password in 60s; try a candidate first).")
	check.Equal(t, "below what came of one", effect(of("9", `["refresh_token","password"]`)+rest), wouldDeny+"requests of 1 of 1 active client: shop (at least 1).")
	check.Equal(t, "of all grants", effect(`{"requests":40}`+rest), wouldDeny+"no request of 1 active client.")
}

// TestOutageOfGrants: a limit that denies in an outage for some grants denies more if it does so
// for all.
func TestOutageOfGrants(t *testing.T) {
	w := newWorld(t)
	first := `{"user":[{"requests":40,"on_outage":"deny","grants":["refresh_token"]},{"name":"all","requests":60`
	w.put("/policies/shop", first+`}]}`).is(http.StatusOK)
	check.Equal(t, "for all", w.summary("PUT", "/policies/shop", first+`,"on_outage":"deny"}]}`), "This change denies more requests only during a store outage.")
	check.Equal(t, "for the same", w.summary("PUT", "/policies/shop", first+`,"frames":1}]}`), notWidened)
}
