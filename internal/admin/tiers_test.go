package admin_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// create makes a resource that does not exist yet.
func (w *instance) create(path, body string) answer {
	w.t.Helper()
	return w.send(request{method: http.MethodPut, path: path, token: writer, ifNoneMatch: "*", body: body})
}

// TestTierIsChangedInOnePlace: a tier is created, given to clients, changed for all of them, and
// removed when no client has it.
func TestTierIsChangedInOnePlace(t *testing.T) {
	w := newWorld(t)
	w.create("/tiers/gold", `{"user":[{"requests":20}],"client":[{"requests":30}],"note":"n"}`).is(http.StatusOK)
	w.create("/tiers/gold", `{}`).is(http.StatusPreconditionFailed)
	w.patch("/policies/shop", `{"tier":"gold"}`).is(http.StatusOK)
	w.put("/policies/app", `{"tier":"gold","user":[{"requests":5}]}`).is(http.StatusOK)
	w.get("/policies/shop").has("tier=gold", "effective.tier=gold", "effective.user.0.requests=20", "meta.source=api")
	w.patch("/tiers/gold?reason=spring", `{"user":[{"requests":25}]}`).is(http.StatusOK).has("clients=2")
	w.get("/policies/shop").has("effective.user.0.requests=25")
	w.get("/policies/app").has("effective.user.0.requests=5", "effective.client.0.requests=30")
	w.get("/clients?prefix=app").has("clients.0.effective.tier=gold")

	w.get("/audit?target=tiers/gold").has("entries.#=2", "entries.0.reason=spring", "entries.0.before.user.0.requests=20",
		"entries.0.more=null")

	w.change(http.MethodDelete, "/tiers/gold", "").is(http.StatusUnprocessableEntity).has("errors.0.field=tiers.gold",
		"errors.0.detail=is the tier of 2 clients: app, shop; first give them another one, or none")
	w.patch("/policies/shop", `{"tier":null}`).is(http.StatusOK)
	w.change(http.MethodDelete, "/policies/app", "").is(http.StatusNoContent)
	w.change(http.MethodDelete, "/tiers/gold", "").is(http.StatusNoContent)
	w.send(request{method: http.MethodGet, path: "/tiers/gold", token: reader}).is(http.StatusNotFound)
	w.change(http.MethodDelete, "/tiers/gold", "").is(http.StatusNotFound).has(
		`detail=tier "gold" does not exist; to create it, PUT it with If-None-Match: *`)
}

// TestEffectOfATier: the effect of a tier change covers all clients that have it.
func TestEffectOfATier(t *testing.T) {
	w := newWorld(t)
	w.create("/tiers/gold", `{"client":[{"requests":30}]}`).is(http.StatusOK)
	w.patch("/policies/shop", `{"tier":"gold"}`).is(http.StatusOK)
	w.ask("shop", "", 9)
	w.ask("app", "", 9)
	a := w.patch("/tiers/gold?validate=true", `{"client":[{"requests":5}]}`).is(http.StatusOK).has("effect.widens=true")
	check.Equal(t, "hit", fmt.Sprint(a.at("effect", "hit")), "[map[at_least:true client_id:shop requests:1]]")
	w.patch("/tiers/gold?validate=true", `{"client":[{"requests":50}]}`).is(http.StatusOK).has("effect.widens=false")
	w.get("/policies/shop").has("effective.client.0.requests=30")
}

// TestTierLocksNoOperatorOut: a tier that would lock out an operator is refused.
func TestTierLocksNoOperatorOut(t *testing.T) {
	w := newWorld(t)
	w.create("/tiers/gold", `{}`).is(http.StatusOK)
	w.patch("/policies/ops", `{"tier":"gold"}`).is(http.StatusOK)
	w.patch("/tiers/gold", `{"client":[{"requests":1,"window":"24h"}]}`).is(http.StatusConflict).has(
		"type=urn:oauth-server:problem:locks-out-admin")
}

// TestOverridesOfUsers: one user of one client has its own limits, under the username in the
// counters.
func TestOverridesOfUsers(t *testing.T) {
	w := newWorld(t)
	w.send(request{method: http.MethodGet, path: "/policies/shop/users/ada", token: reader}).is(http.StatusNotFound)
	w.create("/policies/shop/users/ADA", `{"user":[{"requests":2}],"note":"noisy"}`).is(http.StatusOK)
	w.create("/policies/shop/users/ada", `{"user":[{"requests":2}]}`).is(http.StatusPreconditionFailed)
	check.Equal(t, "requests of ada", w.ask("shop", "ada", 5), 2)
	check.Equal(t, "requests of eve", w.ask("shop", "eve", 5), 5)
	w.get("/policies/shop/users/ada").has("username=ada", "note=noisy")
	w.get("/policies/shop").has("effective.overrides=1", "meta.source=none")
	check.Equal(t, "policies", len(w.get("/policies").at("policies").([]any)), 1) // the one in the file
	w.patch("/policies/shop/users/ada", `{"user":[{"requests":4}]}`).is(http.StatusOK)
	w.get("/policies/shop/users/ada").has("note=noisy")
	check.Equal(t, "more requests of ada", w.ask("shop", "ada", 5), 2)

	// They stay whatever else is changed, and other users keep their limits.
	w.put("/policies/shop", `{"user":[{"requests":100}],"trusted":false}`).is(http.StatusOK)
	w.create("/policies/shop/users/bob%20b", `{"user":[{"requests":3}]}`).is(http.StatusOK)
	w.create("/policies/app/users/ada", `{"user":[{"requests":3}]}`).is(http.StatusOK)
	w.get("/policies/shop").has("effective.overrides=2")
	var page adminapi.Overrides
	w.get("/policies/shop/users?limit=1").into(&page)
	check.Equal(t, "first", page.Overrides[0].Username+page.Next+page.ClientID, "adaadashop")
	w.get("/policies/shop/users?after=ada").into(&page)
	check.Equal(t, "second", page.Overrides[0].Username, "bob b")
	w.get("/audit?target="+url.QueryEscape("overrides/shop ada")).has("entries.#=2", "entries.0.after.user.0.requests=4")

	w.change(http.MethodDelete, "/policies/shop/users/ada", "").is(http.StatusNoContent)
	w.change(http.MethodDelete, "/policies/shop/users/ada", "").is(http.StatusNotFound)
	check.Equal(t, "requests of ada without it", w.ask("shop", "ada", 5), 5)
}

// TestOverridesOfADeletedClient: they can be read and removed.
func TestOverridesOfADeletedClient(t *testing.T) {
	w := newWorld(t)
	w.create("/policies/shop/users/ada", `{"user":[{"requests":2}]}`).is(http.StatusOK)
	w.change(http.MethodDelete, "/clients/shop", "").is(http.StatusNoContent)
	w.get("/policies/shop/users").has("overrides.#=1")
	w.change(http.MethodDelete, "/policies/shop/users/ada", "").is(http.StatusNoContent)
	w.send(request{method: http.MethodGet, path: "/policies/shop/users", token: reader}).is(http.StatusNotFound)
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
	validate(5).has("effect.widens=true", "effect.unknown.0.client_id=shop")
	validate(500).has("effect.widens=false")
	w.create("/policies/shop/users/ada", `{"user":[{"requests":500}]}`).is(http.StatusOK)
	w.change(http.MethodDelete, "/policies/shop/users/ada?validate=true", "").is(http.StatusOK).has("effect.widens=true")
}

// TestSettingsDoNotReachBelowATier: settings apply only to values that the tier does not set.
func TestSettingsDoNotReachBelowATier(t *testing.T) {
	w := newWorld(t)
	w.create("/tiers/gold", `{"mode":"enforce","user":[{"requests":3}]}`).is(http.StatusOK)
	w.patch("/policies/shop", `{"tier":"gold"}`).is(http.StatusOK)
	w.patch("/settings", `{"mode":"dry_run","default":{"user":[{"requests":50}],"client":[{"requests":60}]}}`).is(http.StatusOK)
	e := w.policies.Snapshot().For("shop")
	check.Equal(t, "mode", e.Mode, ratelimit.Enforce)
	check.Equal(t, "limit of users", e.User.All()[0].Requests, int64(3))
	check.Equal(t, "limit of the client", e.Client.All()[0].Requests, int64(60))
}
