package admin_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
)

// changes sends a change of several targets with the current ETag.
func (w *instance) changes(query, body string) answer {
	w.t.Helper()
	etag := w.get("/changes").header.Get("ETag")
	return w.send(request{method: http.MethodPost, path: "/changes" + query, token: writer, ifMatch: etag, contentType: "application/json", body: body})
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
	rehearsed := w.changes("?validate=true", shopAndApp).is(http.StatusOK)
	equal(t, "targets", len(rehearsed.at("changes").([]any)), 4)
	equal(t, "after", rehearsed.at("changes", 0, "after", "client", 0, "requests"), any(3.0))
	equal(t, "hit", rehearsed.at("effect", "hit", 0, "client_id"), any("shop"))
	equal(t, "version", w.policies.Snapshot().Version(), 0)

	before := w.get("/changes").header.Get("ETag")
	made := w.changes("?reason=all+at+once", shopAndApp).is(http.StatusOK)
	equal(t, "version", made.at("version"), any(1.0))
	equal(t, "ETag", made.header.Get("ETag"), w.get("/changes").header.Get("ETag"))
	p := w.policies.Snapshot()
	equal(t, "shop", p.For("shop").Client.All()[0].Requests, 3)
	equal(t, "app", p.For("app").Trusted, true)
	equal(t, "entries", len(w.get("/audit").at("entries").([]any)), 1)
	e := w.newest()
	equal(t, "first", e.Action+" "+e.Target+" "+e.Reason, "update policies/shop all at once")
	equal(t, "more", len(e.More), 3)
	for _, target := range []string{"policies/app", "settings", "candidates/shop"} {
		equal(t, target, len(w.get("/audit?target="+target).at("entries").([]any)), 1)
	}
	w.send(request{method: "POST", path: "/changes", token: writer, ifMatch: before, contentType: "application/json", body: shopAndApp}).is(http.StatusPreconditionFailed)
	w.send(request{method: "POST", path: "/changes", token: writer, contentType: "application/json", body: shopAndApp}).is(http.StatusPreconditionRequired)
	w.send(request{method: "POST", path: "/changes", token: reader, ifMatch: "*", contentType: "application/json", body: shopAndApp}).is(http.StatusForbidden)
	again := w.send(request{method: "POST", path: "/changes", token: writer, ifMatch: "*", contentType: "application/json", body: shopAndApp}).is(http.StatusOK)
	equal(t, "nothing again", len(again.at("changes").([]any)), 0)
	equal(t, "version", again.at("version"), any(1.0))
}

func TestEverythingThatIsSet(t *testing.T) {
	w := newWorld(t)
	equal(t, "nothing", len(w.get("/changes").at("targets").([]any)), 0)
	w.changes("", shopAndApp).is(http.StatusOK)
	a := w.get("/changes")
	var targets []string
	for _, one := range a.at("targets").([]any) {
		targets = append(targets, fmt.Sprint(one.(map[string]any)["target"]))
	}
	check.Equal(t, "targets", targets, []string{"settings", "policies/app", "policies/shop", "candidates/shop"})
	equal(t, "value", a.at("targets", 0, "value", "mode"), any("enforce"))
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
	equal(t, "sent back", len(w.changes("", body(func(*adminapi.SetTarget) {})).is(http.StatusOK).at("changes").([]any)), 0)
	w.changes("", body(func(one *adminapi.SetTarget) { one.Value = []byte("null") })).is(http.StatusOK)
	equal(t, "nothing", len(w.get("/changes").at("targets").([]any)), 0)
	equal(t, "app", w.policies.Snapshot().For("app").User.All()[0].Requests, 7)
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
		a := w.changes("", tt.body).is(http.StatusUnprocessableEntity)
		equal(t, tt.body, a.at("errors", 0, "field"), any(tt.field))
	}
	w.changes("", `{"changes":[`+good+`,{"target":"policies/ops","value":{"client":[{"name":"daily","requests":1,"window":"24h"}]}}]}`).
		is(http.StatusConflict).says(`lock out the admin client "ops"`)
	w.changes("", `{"changes":[`+strings.Repeat(" ", 5<<20)+`]}`).is(http.StatusRequestEntityTooLarge)
	equal(t, "version", w.policies.Snapshot().Version(), 0)
	equal(t, "trusted", w.policies.Snapshot().For("app").Trusted, false)
	// Removing a missing setting of an unknown client is neither an error nor a change.
	equal(t, "removed", len(w.changes("", `{"changes":[{"target":"policies/shpo","value":null}]}`).is(http.StatusOK).at("changes").([]any)), 0)
}

// TestAChangeThatIsTooLargeForTheTrail: such a change is refused, with advice.
func TestAChangeThatIsTooLargeForTheTrail(t *testing.T) {
	w := newWorld(t)
	var parts []string
	note := strings.Repeat("n", 500)
	for i := range 1000 {
		id := fmt.Sprintf("client-%d", i)
		check.OK(t, w.store.CreateClient(t.Context(), confidential(id, func(*clientcfg.Client) {}), clientcfg.Event{}))
		parts = append(parts, fmt.Sprintf(`{"target":"policies/%s","value":{"note":%q}}`, id, note))
	}
	a := w.changes("", `{"changes":[`+strings.Join(parts, ",")+`]}`).is(http.StatusUnprocessableEntity)
	a.says("maximum of 1048576; split it")
	w.changes("", `{"changes":[`+strings.Join(parts[:500], ",")+`]}`).is(http.StatusOK)
}

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
