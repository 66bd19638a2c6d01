package admin_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/check"
)

// changes sends a change of several targets with the current ETag.
func (w *instance) changes(query, body string) answer {
	w.t.Helper()
	etag := w.get("/changes").header.Get("ETag")
	return w.send(request{method: http.MethodPost, path: "/changes" + query, token: writer, ifMatch: etag, body: body})
}

// newest returns the newest entry of the trail.
func (w *instance) newest() (e adminapi.AuditEntry) {
	w.t.Helper()
	var trail adminapi.Audit
	w.get("/audit").into(&trail)
	return trail.Entries[0]
}

const shopAndApp = `{"changes":[{"target":"policies/shop","value":{"client":[{"requests":3}]}},` +
	`{"target":"policies/app","value":{"trusted":true}},{"target":"settings","value":{"mode":"enforce","note":"n"}},` +
	`{"target":"candidates/shop","value":{"client":[{"requests":2}]}}]}`

func TestSeveralTargetsInOneChange(t *testing.T) {
	w := newWorld(t)
	w.ask("shop", "", 5)
	w.changes("?validate=true", shopAndApp).is(http.StatusOK).has("changes.#=4", "changes.0.after.client.0.requests=3",
		"effect.hit.0.client_id=shop")
	check.Equal(t, "version", w.policies.Snapshot().Version(), 0)

	before := w.get("/changes").header.Get("ETag")
	made := w.changes("?reason=all+at+once", shopAndApp).is(http.StatusOK).has("version=1")
	check.Equal(t, "ETag", made.header.Get("ETag"), w.get("/changes").header.Get("ETag"))
	p := w.policies.Snapshot()
	check.Equal(t, "shop", p.For("shop").Client.All()[0].Requests, 3)
	check.Equal(t, "app", p.For("app").Trusted, true)
	w.get("/audit").has("entries.#=1")
	e := w.newest()
	check.Equal(t, "first", e.Action+" "+e.Target+" "+e.Reason, "update policies/shop all at once")
	check.Equal(t, "more", len(e.More), 3)
	for _, target := range []string{"policies/app", "settings", "candidates/shop"} {
		w.get("/audit?target=" + target).has("entries.#=1")
	}
	w.send(request{method: "POST", path: "/changes", token: writer, ifMatch: before, body: shopAndApp}).is(http.StatusPreconditionFailed)
	w.send(request{method: "POST", path: "/changes", token: writer, body: shopAndApp}).is(http.StatusPreconditionRequired)
	w.send(request{method: "POST", path: "/changes", token: reader, ifMatch: "*", body: shopAndApp}).is(http.StatusForbidden)
	w.send(request{method: "POST", path: "/changes", token: writer, ifMatch: "*", body: shopAndApp}).is(http.StatusOK).has(
		"changes.#=0", "version=1")
}

func TestEverythingThatIsSet(t *testing.T) {
	w := newWorld(t)
	w.get("/changes").has("targets.#=0")
	w.changes("", shopAndApp).is(http.StatusOK)
	a := w.get("/changes")
	var targets []string
	for _, one := range a.at("targets").([]any) {
		targets = append(targets, fmt.Sprint(one.(map[string]any)["target"]))
	}
	check.Equal(t, "targets", targets, []string{"settings", "policies/app", "policies/shop", "candidates/shop"})
	a.has("targets.0.value.mode=enforce")
	w.send(request{method: "GET", path: "/changes", token: reader, ifNoneMatch: a.header.Get("ETag")}).is(http.StatusNotModified)

	// A document that was read can be sent back without effect. Null removes a setting.
	var set adminapi.Set
	a.into(&set)
	body := func(change func(*adminapi.SetTarget)) string {
		var parts []string
		for _, one := range set.Targets {
			change(&one)
			parts = append(parts, fmt.Sprintf(`{"target":%q,"value":%s}`, one.Target, one.Value))
		}
		return `{"changes":[` + strings.Join(parts, ",") + `]}`
	}
	w.changes("", body(func(*adminapi.SetTarget) {})).is(http.StatusOK).has("changes.#=0")
	w.changes("", body(func(one *adminapi.SetTarget) { one.Value = []byte("null") })).is(http.StatusOK)
	w.get("/changes").has("targets.#=0")
	check.Equal(t, "app", w.policies.Snapshot().For("app").User.All()[0].Requests, 7)
}

func TestABadChangeOfSeveralTargetsChangesNothing(t *testing.T) {
	w := newWorld(t)
	good := `{"target":"policies/app","value":{"trusted":true}}`
	for _, tt := range []struct{ body, field string }{
		{`{"changes":[]}`, "changes"},
		{`{"changes":[` + good + `],"until":"x"}`, "until"},
		{`{"changes":[` + good + `],"for":"1s"}`, "for"},
		{`{"changes":[` + good + `],"for":"31d"}`, "for"},
		{`{"changes":[` + good + `,{"target":"policies/shop"}]}`, "changes[1].value"},
		{`{"changes":[` + good + `,` + good + `]}`, "changes[1].target"},
		{`{"changes":[` + good + `,{"target":"clients/shop/counters","value":{}}]}`, "changes[1].target"},
		{`{"changes":[` + good + `,{"target":"ends/policies/shop","value":{}}]}`, "changes[1].target"},
		{`{"changes":[` + good + `,{"target":"policies/","value":{}}]}`, "changes[1].target"},
		{`{"changes":[` + good + `,{"target":"policies/shpo","value":{}}]}`, "changes[1].target"},
		{`{"changes":[` + good + `,{"target":"policies/shop","value":{"user":[{"requests":0}]}}]}`, "changes[1].value.user[0].requests"},
		{`{"changes":[` + good + `,{"target":"policies/shop","value":{"usr":[]}}]}`, "changes[1].value.usr"},
		{`{"changes":[` + good + `,{"target":"candidates/shop","value":{}}]}`, "changes[1].value.user"},
		{`{"changes":[` + good + `,{"target":"settings","value":[]}]}`, "changes[1].value"},
	} {
		w.changes("", tt.body).is(http.StatusUnprocessableEntity).has("errors.0.field=" + tt.field)
	}
	w.changes("", `{"changes":[`+good+`,{"target":"policies/ops","value":{"client":[{"name":"daily","requests":1,"window":"24h"}]}}]}`).
		is(http.StatusConflict).says(`lock out the admin client "ops"`)
	w.changes("", `{"changes":[`+strings.Repeat(" ", 5<<20)+`]}`).is(http.StatusRequestEntityTooLarge)
	check.Equal(t, "version", w.policies.Snapshot().Version(), 0)
	check.Equal(t, "trusted", w.policies.Snapshot().For("app").Trusted, false)
	// Removing a missing setting of an unknown client is neither an error nor a change.
	w.changes("", `{"changes":[{"target":"policies/shpo","value":null}]}`).is(http.StatusOK).has("changes.#=0")
}

// TestAChangeThatIsTooLargeForTheTrail: such a change is refused, with advice.
func TestAChangeThatIsTooLargeForTheTrail(t *testing.T) {
	w := newGateway(t) // where clients need not be registered
	var parts []string
	for i := range 1000 {
		parts = append(parts, fmt.Sprintf(`{"target":"policies/client-%d","value":{"note":%q}}`, i, strings.Repeat("n", 500)))
	}
	w.changes("", `{"changes":[`+strings.Join(parts, ",")+`]}`).is(http.StatusUnprocessableEntity).says("maximum of 1048576; split it")
	w.changes("", `{"changes":[`+strings.Join(parts[:500], ",")+`]}`).is(http.StatusOK)
}

// TestTiersAndOverridesInOneChange: tiers and overrides are changed, undone and ended like
// everything else.
func TestTiersAndOverridesInOneChange(t *testing.T) {
	w := newWorld(t)
	body := `{"changes":[{"target":"policies/shop","value":{"tier":"gold"}},{"target":"overrides/shop ada","value":{"user":[{"requests":1}]}},` +
		`{"target":"tiers/gold","value":{"user":[{"requests":42}]}}]}`
	w.changes("", body).is(http.StatusOK)
	check.Equal(t, "shop", w.policies.Snapshot().For("shop").User.All()[0].Requests, 42)
	a := w.get("/changes")
	var targets []string
	for _, one := range a.at("targets").([]any) {
		targets = append(targets, fmt.Sprint(one.(map[string]any)["target"]))
	}
	check.Equal(t, "targets", targets, []string{"tiers/gold", "policies/shop", "overrides/shop ada"})
	w.changes("", body).is(http.StatusOK).has("changes.#=0")

	for bad, field := range map[string]string{
		`{"target":"tiers/a b","value":{}}`:                                 "changes[0].target",
		`{"target":"overrides/shop","value":{"user":[{"requests":1}]}}`:     "changes[0].target",
		`{"target":"overrides/shpo ada","value":{"user":[{"requests":1}]}}`: "changes[0].target",
		`{"target":"overrides/shop ada","value":{}}`:                        "changes[0].value.user",
	} {
		w.changes("", `{"changes":[`+bad+`]}`).is(http.StatusUnprocessableEntity).has("errors.0.field=" + field)
	}
	w.changes("", `{"changes":[{"target":"tiers/gold","value":null}]}`).is(http.StatusUnprocessableEntity) // shop has it

	w.put("/tiers/gold?for=1h", `{"user":[{"requests":50}]}`).is(http.StatusOK)
	w.get("/changes").has("targets.0.until=2026-03-01T13:00:00Z")
	w.change("DELETE", "/policies/shop/users/ada?for=1h", "").is(http.StatusNoContent)
	w.clock.Advance(time.Hour)
	check.OK(t, w.policies.End(t.Context()))
	check.Equal(t, "as before", w.get("/changes").at("targets"), a.at("targets"))
	w.undo("1/undo?validate=true").is(http.StatusOK)
	w.change("DELETE", "/policies/shop", "").is(http.StatusNoContent)
	w.undo("4/undo").is(http.StatusOK)
	check.Equal(t, "undone", w.get("/changes").at("targets"), a.at("targets"))
}
