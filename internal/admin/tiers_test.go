package admin_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/ratelimit"
)

// create makes a resource that does not exist yet.
func (w *instance) create(path, body string) answer {
	w.t.Helper()
	return w.send(request{method: http.MethodPut, path: path, token: writer, ifNoneMatch: "*", contentType: "application/json", body: body})
}

// TestTierIsChangedInOnePlace: a tier is created, given to clients, changed for all of them, and
// removed when no client has it.
func TestTierIsChangedInOnePlace(t *testing.T) {
	w := newWorld(t)
	w.create("/tiers/gold", `{"user":[{"requests":20}],"client":[{"requests":30}],"note":"n"}`).is(http.StatusOK)
	w.create("/tiers/gold", `{}`).is(http.StatusPreconditionFailed)
	w.patch("/policies/shop", `{"tier":"gold"}`).is(http.StatusOK)
	w.put("/policies/app", `{"tier":"gold","user":[{"requests":5}]}`).is(http.StatusOK)
	a := w.get("/policies/shop")
	equal(t, "tier", a.at("tier"), any("gold"))
	equal(t, "tier that applies", a.at("effective", "tier"), any("gold"))
	equal(t, "limit of users", a.at("effective", "user", 0, "requests"), any(20.0))
	equal(t, "source", a.at("meta", "source"), any("api"))
	changed := w.patch("/tiers/gold?reason=spring", `{"user":[{"requests":25}]}`).is(http.StatusOK)
	equal(t, "clients", changed.at("clients"), any(2.0))
	equal(t, "limit of shop", w.get("/policies/shop").at("effective", "user", 0, "requests"), any(25.0))
	equal(t, "limit of app", w.get("/policies/app").at("effective", "user", 0, "requests"), any(5.0))
	equal(t, "client limit of app", w.get("/policies/app").at("effective", "client", 0, "requests"), any(30.0))
	equal(t, "tier of app in the list of clients", w.get("/clients?prefix=app").at("clients", 0, "effective", "tier"), any("gold"))

	trail := w.get("/audit?target=tiers/gold")
	equal(t, "entries", len(trail.at("entries").([]any)), 2)
	equal(t, "reason", trail.at("entries", 0, "reason"), any("spring"))
	equal(t, "before", trail.at("entries", 0, "before", "user", 0, "requests"), any(20.0))
	equal(t, "entries after it", trail.at("entries", 0, "more"), nil)

	refused := w.change(http.MethodDelete, "/tiers/gold", "").is(http.StatusUnprocessableEntity)
	equal(t, "field", refused.at("errors", 0, "field"), any("tiers.gold"))
	equal(t, "why", refused.at("errors", 0, "detail"), any("is the tier of 2 clients: app, shop; give them another one, or none, first"))
	w.patch("/policies/shop", `{"tier":null}`).is(http.StatusOK)
	w.change(http.MethodDelete, "/policies/app", "").is(http.StatusNoContent)
	w.change(http.MethodDelete, "/tiers/gold", "").is(http.StatusNoContent)
	w.send(request{method: http.MethodGet, path: "/tiers/gold", token: reader}).is(http.StatusNotFound)
	gone := w.change(http.MethodDelete, "/tiers/gold", "").is(http.StatusNotFound)
	equal(t, "detail", gone.at("detail"), any(`there is no tier "gold"; to make one, PUT it with If-None-Match: *`))
}

func TestTierThatCannotBe(t *testing.T) {
	w := newWorld(t)
	w.put("/tiers/"+strings.Repeat("x", 65), `{}`).is(http.StatusNotFound).says("no name has more than 64 characters")
	w.create("/tiers/gold", `{}`).is(http.StatusOK)
	for _, tt := range []struct{ path, body, field string }{
		{"/policies/shop", `{"tier":"silver"}`, "clients.shop.tier"},
		{"/policies/shop", `{"tier":""}`, "tier"},
		{"/policies/shop", `{"tier":7}`, "tier"},
		{"/tiers/gold", `{"name":"silver"}`, "name"},
		{"/tiers/gold", `{"trusted":true}`, "trusted"},
		{"/tiers/gold", `{"mode":"on"}`, "mode"},
		{"/tiers/gold", `{"user":[]}`, "user"},
		{"/tiers/gold", `{"over_limit":"wait"}`, "over_limit"},
		{"/tiers/gold", `{"over_limit":""}`, "over_limit"},
		{"/policies/shop", `{"over_limit":""}`, "over_limit"},
		{"/policies/shop", `{"over_limit":"reuse","trusted":true}`, "over_limit"},
		{"/settings", `{"default":{"over_limit":""}}`, "default.over_limit"},
		{"/settings", `{"default":{"over_limit":"wait"}}`, "default.over_limit"},
		{"/policies/shop/users/ada", `{"user":[{"requests":1}],"over_limit":"reuse"}`, "over_limit"},
		{"/tiers/gold", `{"criticality":"high"}`, "criticality"},
		{"/tiers/gold", `{"criticality":""}`, "criticality"},
		{"/policies/shop", `{"criticality":"Critical"}`, "criticality"},
		{"/policies/shop", `{"criticality":3}`, "criticality"},
		{"/policies/shop", `{"criticality":""}`, "criticality"},
		{"/settings", `{"criticality":"critical"}`, "criticality"},
		{"/settings", `{"default":{"criticality":""}}`, "default.criticality"},
		{"/settings", `{"default":{"criticality":"high"}}`, "default.criticality"},
		{"/policies/shop/users/ada", `{"user":[{"requests":1}],"criticality":"critical"}`, "criticality"},
		{"/candidates/shop", `{"user":[{"requests":1}],"criticality":"high"}`, "criticality"},
		{"/candidates/shop", `{"user":[{"requests":1}],"criticality":""}`, "criticality"},
		{"/tiers/gold", `{"max_wait":"soon"}`, "max_wait"},
		{"/tiers/gold", `{"max_wait":2}`, "max_wait"},
		{"/tiers/gold", `{"max_wait":"11s"}`, "max_wait"},
		{"/tiers/gold", `{"max_waiting":3}`, "max_waiting"},
		{"/tiers/gold", `{"max_wait":"2s","max_waiting":0}`, "max_waiting"},
		{"/tiers/gold", `{"user":[{"requests":1,"window":"1s"}],"max_wait":"2s"}`, "max_wait"},
		{"/policies/shop", `{"max_wait":"2s","trusted":true}`, "max_wait"},
		{"/policies/shop", `{"max_wait":"2s","over_limit":"reuse"}`, "max_wait"},
		{"/policies/shop", `{"max_waiting":3}`, "max_waiting"},
		{"/settings", `{"default":{"max_waiting":3}}`, "default.max_waiting"},
		{"/settings", `{"default":{"max_wait":"-1s"}}`, "default.max_wait"},
		{"/settings", `{"default":{"user":[{"requests":1,"window":"1s"}],"client":[{"requests":1,"window":"1s"}],"max_wait":"2s"}}`, "default.max_wait"},
		{"/policies/shop/users/ada", `{"user":[{"requests":1}],"max_wait":"2s"}`, "max_wait"},
		{"/tiers/gold", `{"client":[{"requests":0}]}`, "client[0].requests"},
		{"/tiers/gold", `{"note":"a\nb"}`, "note"},
		{"/tiers/a%20b", `{}`, "name"},
	} {
		a := w.put(tt.path, tt.body).is(http.StatusUnprocessableEntity)
		equal(t, tt.path+" "+tt.body, a.at("errors", 0, "field"), any(tt.field))
	}
	w.send(request{method: http.MethodPut, path: "/tiers/silver", token: reader, ifNoneMatch: "*", contentType: "application/json", body: "{}"}).is(http.StatusForbidden)
	w.send(request{method: http.MethodPut, path: "/tiers/silver", token: writer, contentType: "application/json", body: "{}"}).is(http.StatusPreconditionRequired)
}

// TestOverLimit: it is shown with the resource that sets it, and among the values in force.
func TestOverLimit(t *testing.T) {
	w := newWorld(t)
	equal(t, "of all clients", w.get("/settings").at("default", "over_limit"), any("deny"))
	w.create("/tiers/gold", `{"over_limit":"reuse"}`).is(http.StatusOK)
	equal(t, "of the tier", w.get("/tiers/gold").at("over_limit"), any("reuse"))
	w.patch("/policies/shop", `{"tier":"gold"}`).is(http.StatusOK)
	equal(t, "what applies", w.get("/policies/shop").at("effective", "over_limit"), any("reuse"))
	w.patch("/policies/shop", `{"over_limit":"deny"}`).is(http.StatusOK)
	equal(t, "of the policy", w.get("/policies/shop").at("over_limit"), any("deny"))
	equal(t, "what applies", w.get("/policies/shop").at("effective", "over_limit"), any("deny"))
	w.patch("/settings", `{"default":{"over_limit":"reuse"}}`).is(http.StatusOK)
	equal(t, "of all clients", w.get("/settings").at("default", "over_limit"), any("reuse"))
	equal(t, "changed", fmt.Sprint(w.get("/settings").at("meta", "changed")), "[default.over_limit]")
	equal(t, "what applies", w.get("/policies/app").at("effective", "over_limit"), any("reuse"))
}

// TestMaxWait: it is shown with the resource that sets it, and among the values in force.
func TestMaxWait(t *testing.T) {
	w := newWorld(t)
	equal(t, "of all clients", w.get("/settings").at("default", "max_wait"), nil)
	w.create("/tiers/gold", `{"max_wait":"2s","max_waiting":20}`).is(http.StatusOK)
	equal(t, "of the tier", w.get("/tiers/gold").at("max_waiting"), any(20.0))
	w.patch("/policies/shop", `{"tier":"gold"}`).is(http.StatusOK)
	equal(t, "what applies", w.get("/policies/shop").at("effective", "max_wait"), any("2s"))
	equal(t, "what applies", w.get("/policies/shop").at("effective", "max_waiting"), any(20.0))
	w.patch("/policies/shop", `{"max_wait":"0s"}`).is(http.StatusOK)
	equal(t, "of the policy", w.get("/policies/shop").at("max_wait"), any("0s"))
	equal(t, "what applies", w.get("/policies/shop").at("effective", "max_wait"), nil)
	w.patch("/settings", `{"default":{"max_wait":"1.5s","max_waiting":3}}`).is(http.StatusOK)
	equal(t, "of all clients", w.get("/settings").at("default", "max_wait"), any("1.5s"))
	equal(t, "changed", fmt.Sprint(w.get("/settings").at("meta", "changed")), "[default.max_wait default.max_waiting]")
	equal(t, "what applies", w.get("/policies/app").at("effective", "max_waiting"), any(3.0))
}

// TestEffectOfATier: the effect of a tier change covers all clients that have it.
func TestEffectOfATier(t *testing.T) {
	w := newWorld(t)
	w.create("/tiers/gold", `{"client":[{"requests":30}]}`).is(http.StatusOK)
	w.patch("/policies/shop", `{"tier":"gold"}`).is(http.StatusOK)
	w.ask("shop", "", 9)
	w.ask("app", "", 9)
	a := w.patch("/tiers/gold?validate=true", `{"client":[{"requests":5}]}`).is(http.StatusOK)
	equal(t, "widens", a.at("effect", "widens"), any(true))
	equal(t, "hit", fmt.Sprint(a.at("effect", "hit")), "[map[at_least:true client_id:shop requests:1]]")
	a = w.patch("/tiers/gold?validate=true", `{"client":[{"requests":50}]}`).is(http.StatusOK)
	equal(t, "a higher limit widens", a.at("effect", "widens"), any(false))
	equal(t, "limit after all", w.get("/policies/shop").at("effective", "client", 0, "requests"), any(30.0))
}

// TestTierLocksNoOperatorOut: a tier that would lock out an operator is refused.
func TestTierLocksNoOperatorOut(t *testing.T) {
	w := newWorld(t)
	w.create("/tiers/gold", `{}`).is(http.StatusOK)
	w.patch("/policies/ops", `{"tier":"gold"}`).is(http.StatusOK)
	a := w.patch("/tiers/gold", `{"client":[{"requests":1,"window":"24h"}]}`).is(http.StatusConflict)
	equal(t, "type", a.at("type"), any("urn:oauth-server:problem:locks-out-admin"))
}

// TestOverridesOfUsers: one user of one client has its own limits, under the username in the
// counters.
func TestOverridesOfUsers(t *testing.T) {
	w := newWorld(t)
	w.send(request{method: http.MethodGet, path: "/policies/shop/users/ada", token: reader}).is(http.StatusNotFound)
	w.create("/policies/shop/users/ADA", `{"user":[{"requests":2}],"note":"noisy"}`).is(http.StatusOK)
	w.create("/policies/shop/users/ada", `{"user":[{"requests":2}]}`).is(http.StatusPreconditionFailed)
	equal(t, "requests of ada", w.ask("shop", "ada", 5), 2)
	equal(t, "requests of eve", w.ask("shop", "eve", 5), 5)
	a := w.get("/policies/shop/users/ada")
	equal(t, "username", a.at("username"), any("ada"))
	equal(t, "note", a.at("note"), any("noisy"))
	a = w.get("/policies/shop")
	equal(t, "overrides", a.at("effective", "overrides"), any(1.0))
	equal(t, "source", a.at("meta", "source"), any("none"))
	equal(t, "policies", len(w.get("/policies").at("policies").([]any)), 1) // the one in the file
	w.patch("/policies/shop/users/ada", `{"user":[{"requests":4}]}`).is(http.StatusOK)
	equal(t, "note after a patch", w.get("/policies/shop/users/ada").at("note"), any("noisy"))
	equal(t, "more requests of ada", w.ask("shop", "ada", 5), 2)

	// They stay whatever else is changed, and other users keep their limits.
	w.put("/policies/shop", `{"user":[{"requests":100}],"trusted":false}`).is(http.StatusOK)
	w.create("/policies/shop/users/bob%20b", `{"user":[{"requests":3}]}`).is(http.StatusOK)
	w.create("/policies/app/users/ada", `{"user":[{"requests":3}]}`).is(http.StatusOK)
	equal(t, "overrides after a change of the policy", w.get("/policies/shop").at("effective", "overrides"), any(2.0))
	var page adminapi.Overrides
	w.get("/policies/shop/users?limit=1").into(&page)
	equal(t, "first", page.Overrides[0].Username+page.Next+page.ClientID, "adaadashop")
	w.get("/policies/shop/users?after=ada").into(&page)
	equal(t, "second", page.Overrides[0].Username, "bob b")
	trail := w.get("/audit?target=" + url.QueryEscape("overrides/shop ada"))
	equal(t, "entries", len(trail.at("entries").([]any)), 2)
	equal(t, "limit in the trail", trail.at("entries", 0, "after", "user", 0, "requests"), any(4.0))

	w.change(http.MethodDelete, "/policies/shop/users/ada", "").is(http.StatusNoContent)
	w.change(http.MethodDelete, "/policies/shop/users/ada", "").is(http.StatusNotFound)
	equal(t, "requests of ada without it", w.ask("shop", "ada", 5), 5)
}

// TestOverridesOfADeletedClient: they can be read and removed.
func TestOverridesOfADeletedClient(t *testing.T) {
	w := newWorld(t)
	w.create("/policies/shop/users/ada", `{"user":[{"requests":2}]}`).is(http.StatusOK)
	w.change(http.MethodDelete, "/clients/shop", "").is(http.StatusNoContent)
	equal(t, "overrides", len(w.get("/policies/shop/users").at("overrides").([]any)), 1)
	w.change(http.MethodDelete, "/policies/shop/users/ada", "").is(http.StatusNoContent)
	w.send(request{method: http.MethodGet, path: "/policies/shop/users", token: reader}).is(http.StatusNotFound)
}

func TestOverrideThatCannotBe(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct{ path, body, field string }{
		{"/policies/shop/users/ada", `{}`, "user"},
		{"/policies/shop/users/ada", `{"user":[]}`, "user"},
		{"/policies/shop/users/ada", `{"user":[{"requests":0}]}`, "user[0].requests"},
		{"/policies/shop/users/ada", `{"user":[{"requests":1}],"client":[]}`, "client"},
		{"/policies/shop/users/ada", `{"user":[{"requests":1}],"username":"eve"}`, "username"},
		{"/policies/shop/users/ada", `{"user":[{"requests":1}],"client_id":"app"}`, "client_id"},
		{"/policies/shop/users/%20a", `{"user":[{"requests":1}]}`, "username"},
	} {
		a := w.create(tt.path, tt.body).is(http.StatusUnprocessableEntity)
		equal(t, tt.path+" "+tt.body, a.at("errors", 0, "field"), any(tt.field))
	}
	w.create("/policies/nobody/users/ada", `{"user":[{"requests":1}]}`).is(http.StatusNotFound)
}

// TestEffectOfAnOverride: lower limits for one user can deny more, and the summary says that the
// figures do not show how much.
func TestEffectOfAnOverride(t *testing.T) {
	w := newWorld(t)
	w.ask("shop", "ada", 9)
	validate := func(requests int) answer {
		t.Helper()
		return w.create("/policies/shop/users/ada?validate=true", fmt.Sprintf(`{"user":[{"requests":%d}]}`, requests)).is(http.StatusOK)
	}
	a := validate(5)
	equal(t, "widens", a.at("effect", "widens"), any(true))
	equal(t, "unknown", a.at("effect", "unknown", 0, "client_id"), any("shop"))
	equal(t, "a higher limit widens", validate(500).at("effect", "widens"), any(false))
	w.create("/policies/shop/users/ada", `{"user":[{"requests":500}]}`).is(http.StatusOK)
	a = w.change(http.MethodDelete, "/policies/shop/users/ada?validate=true", "").is(http.StatusOK)
	equal(t, "taking it back widens", a.at("effect", "widens"), any(true))
}

// TestSettingsDoNotReachBelowATier: settings apply only to values that the tier does not set.
func TestSettingsDoNotReachBelowATier(t *testing.T) {
	w := newWorld(t)
	w.create("/tiers/gold", `{"mode":"enforce","user":[{"requests":3}]}`).is(http.StatusOK)
	w.patch("/policies/shop", `{"tier":"gold"}`).is(http.StatusOK)
	w.patch("/settings", `{"mode":"dry_run","default":{"user":[{"requests":50}],"client":[{"requests":60}]}}`).is(http.StatusOK)
	e := w.policies.Snapshot().For("shop")
	equal(t, "mode", e.Mode, ratelimit.Enforce)
	equal(t, "limit of users", e.User.All()[0].Requests, int64(3))
	equal(t, "limit of the client", e.Client.All()[0].Requests, int64(60))
}
