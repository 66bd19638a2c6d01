package admin_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
)

const tenAMinute = `{"user":[{"name":"per-minute","requests":10,"window":"60s"}],"client":[{"requests":3}]}`

func TestPolicyIsChangedAndInForce(t *testing.T) {
	w := newWorld(t)
	before := w.get("/policies/shop").has("meta.source=none")
	after := w.put("/policies/shop?reason=ticket+4711", tenAMinute).is(http.StatusOK).has("user.0.window=60s", "effective.client.0.requests=3",
		"meta.source=api")
	if before.header.Get("ETag") == after.header.Get("ETag") {
		t.Error("the ETag stayed")
	}
	check.Equal(t, "read again", string(w.get("/policies/shop").body), string(after.body))
	check.Equal(t, "read again", w.get("/policies/shop").header.Get("ETag"), after.header.Get("ETag"))
	check.Equal(t, "passed", w.ask("shop", "", 5), 3)

	var trail struct{ Entries []adminapi.AuditEntry }
	w.get("/audit").into(&trail)
	e := trail.Entries[0]
	check.Equal(t, "actor", e.Actor, clientcfg.Actor{ClientID: "ops", Address: "192.0.2.1"})
	check.Equal(t, "action", e.Action+" "+e.Target, "update policies/shop")
	check.Equal(t, "reason", e.Reason, "ticket 4711")
	check.Equal(t, "before", string(e.Before), "null")
	check.Equal(t, "time", e.At, noon)
	if !strings.Contains(string(e.After), `"requests":10`) {
		t.Errorf("after: %s", e.After)
	}
}

func TestChangesNeedTheETag(t *testing.T) {
	w := newWorld(t)
	put := func(ifMatch, ifNoneMatch string, status int) answer {
		t.Helper()
		return w.send(request{method: "PUT", path: "/policies/shop", token: writer, ifMatch: ifMatch, ifNoneMatch: ifNoneMatch, body: tenAMinute}).is(status)
	}
	put("", "", http.StatusPreconditionRequired).says("If-Match")
	first := w.get("/policies/shop").header.Get("ETag")
	put(`"0-0"`, "", http.StatusPreconditionFailed)
	put("W/"+first, "", http.StatusPreconditionFailed)
	put("*", "", http.StatusPreconditionFailed) // there is no policy yet
	check.Equal(t, "version", w.policies.Snapshot().Version(), 0)

	second := put(first, "", http.StatusOK).header.Get("ETag")
	put(first, "", http.StatusPreconditionFailed).says(second)
	put("", "*", http.StatusPreconditionFailed)
	third := put(`"0-0", `+second, "", http.StatusOK).header.Get("ETag")
	put("*", "", http.StatusOK)
	put(third, "", http.StatusPreconditionFailed)
	for method, path := range map[string]string{
		"PATCH": "/settings", "DELETE": "/policies/shop", "POST": "/candidates/shop/promote",
	} {
		w.send(request{method: method, path: path, token: writer, body: "{}"}).is(http.StatusPreconditionRequired)
		w.send(request{method: method, path: path, token: writer, body: "{}", ifMatch: first}).is(http.StatusPreconditionFailed)
	}
	w.send(request{method: "GET", path: "/settings", token: reader, ifNoneMatch: w.get("/settings").header.Get("ETag")}).is(http.StatusNotModified)
}

// TestETagsAreOfOneResource: changes of different resources do not conflict.
func TestETagsAreOfOneResource(t *testing.T) {
	w := newWorld(t)
	shop, settings := w.get("/policies/shop").header.Get("ETag"), w.get("/settings").header.Get("ETag")
	w.put("/policies/app", tenAMinute).is(http.StatusOK)
	check.Equal(t, "shop", w.get("/policies/shop").header.Get("ETag"), shop)
	check.Equal(t, "settings", w.get("/settings").header.Get("ETag"), settings)
}

func TestOfManyOperatorsWithOneETagOneWins(t *testing.T) {
	store := openStore(t)
	a, b := newInstance(t, "i-1", store, file()), newInstance(t, "i-2", store, file())
	etag := a.get("/policies/shop").header.Get("ETag")
	status := make([]int, 20)
	var operators sync.WaitGroup
	for i := range status {
		operators.Go(func() {
			status[i] = []*instance{a, b}[i%2].send(request{
				method: "PUT", path: "/policies/shop", token: writer, ifMatch: etag,
				body: `{"user":[{"requests":` + strconv.Itoa(i+1) + `}]}`,
			}).status
		})
	}
	operators.Wait()
	won := 0
	for _, s := range status {
		if s == http.StatusOK {
			won++
		} else {
			check.Equal(t, "status", s, http.StatusPreconditionFailed)
		}
	}
	check.Equal(t, "winners", won, 1)
}

func TestPatchChangesWhatItNames(t *testing.T) {
	w := newWorld(t)
	// app has a policy in the file. Fields that are not in the patch stay.
	w.patch("/policies/app", `{"trusted":true,"note":"friends"}`).is(http.StatusOK).has("user.0.requests=7", "effective.trusted=true")
	w.patch("/policies/app", `{"trusted":null,"user":null,"mode":"dry_run"}`).is(http.StatusOK).has("trusted=false", "note=friends",
		"effective.mode=dry_run", "effective.user.0.requests=100")
	w.change("DELETE", "/policies/app", "").is(http.StatusNoContent)
	w.get("/policies/app").has("meta.source=file", "user.0.requests=7")
	w.change("DELETE", "/policies/app", "").is(http.StatusNotFound).says("configuration file")
}

func TestSettingsLieOnTopOfTheFile(t *testing.T) {
	w := newWorld(t)
	a := w.patch("/settings", `{"mode":"dry_run","canary_percent":5,"default":{"client":[{"requests":2}]}}`).is(http.StatusOK).has("mode=dry_run",
		"default.user.0.requests=100")
	var meta struct{ Changed []string }
	b, err := json.Marshal(a.at("meta"))
	check.OK(t, err)
	check.OK(t, json.Unmarshal(b, &meta))
	check.Equal(t, "changed", meta.Changed, []string{"mode", "canary_percent", "default.client"})
	a = w.patch("/settings", `{"mode":null,"default":{"client":null,"hide_headers":true}}`).is(http.StatusOK).has("mode=enforce",
		"default.client.0.requests=100")
	check.Equal(t, "hide", w.policies.Snapshot().For("shop").HideHeaders, true)
	a.has("canary_percent=5")
	w.put("/settings", `{"mode":"off"}`).is(http.StatusOK).has("canary_percent=100")
	w.change("DELETE", "/settings", "").is(http.StatusNoContent)
	p, want := w.policies.Snapshot(), file()
	want.Clients = nil
	check.Equal(t, "settings", p.Settings(), want)
	for id, policy := range file().Clients {
		own, _ := p.Policy(id)
		check.Equal(t, "policy", own, clientcfg.Value{Policy: policy})
	}
}

// TestWhatWasReadCanBeSent: a document that was read can be edited and sent back.
func TestWhatWasReadCanBeSent(t *testing.T) {
	w := newWorld(t)
	w.put("/candidates/shop", `{"user":[{"requests":5}]}`).is(http.StatusOK)
	for _, path := range []string{"/settings", "/policies/app", "/policies/shop", "/candidates/shop"} {
		first := w.get(path)
		second := w.put(path, string(first.body)).is(http.StatusOK)
		for _, field := range []string{"mode", "user", "client", "default", "effective", "since"} {
			check.Equal(t, path+", "+field, second.at(field), first.at(field))
		}
	}
}

func TestUnknownClientsAreRefused(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/policies/shpo", "/candidates/shpo", "/clients/shpo/counters", "/policies/" + strings.Repeat("x", 200)} {
		w.send(request{method: "GET", path: path, token: reader}).is(http.StatusNotFound)
	}
	w.send(request{method: "PUT", path: "/policies/shpo", token: writer, ifNoneMatch: "*", body: "{}"}).is(http.StatusNotFound).says(`"shpo"`)
	w.send(request{method: "DELETE", path: "/clients/shpo/counters", token: writer}).is(http.StatusNotFound)
	// A client that was just created is not unknown.
	check.OK(t, w.store.CreateClient(t.Context(), confidential("shpo", func(*clientcfg.Client) {}), clientcfg.Event{}))
	w.put("/policies/shpo", tenAMinute).is(http.StatusOK)
	// Its policy can still be removed after the client is deleted.
	check.OK(t, w.store.DeleteClient(t.Context(), "shpo", clientcfg.Event{}))
	check.OK(t, w.clients.Renew(t.Context(), 0))
	w.change("DELETE", "/policies/shpo", "").is(http.StatusNoContent)
	w.send(request{method: "GET", path: "/policies/shpo", token: reader}).is(http.StatusNotFound)
}

func TestLockOutIsRefused(t *testing.T) {
	w := newWorld(t)
	daily := `[{"name":"daily","requests":1,"window":"24h"}]`
	lock := func(a answer) {
		t.Helper()
		a.is(http.StatusConflict).says(`lock out the admin client "ops"`)
	}
	lock(w.put("/policies/ops", `{"client":`+daily+`}`))
	lock(w.put("/policies/ops", `{"client":[{"requests":100,"on_outage":"deny"}]}`))
	lock(w.patch("/settings", `{"default":{"client":`+daily+`}}`))
	lock(w.patch("/settings?validate=true", `{"default":{"client":`+daily+`}}`))
	w.put("/policies/viewer", `{"client":`+daily+`}`).is(http.StatusOK)
	w.put("/policies/ops", `{"trusted":true}`).is(http.StatusOK)
	w.patch("/settings", `{"default":{"client":`+daily+`}}`).is(http.StatusOK)
	lock(w.put("/policies/ops", `{}`))
	w.patch("/policies/ops", `{"mode":"dry_run","trusted":false}`).is(http.StatusOK)
	lock(w.patch("/policies/ops", `{"mode":"enforce"}`))
	check.Equal(t, "version", w.policies.Snapshot().Version(), 4)
}

func TestValidateChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.put("/policies/shop?validate=true", tenAMinute).is(http.StatusOK).has("valid=true", "before=null", "after.user.0.requests=10",
		"effect.widens=true")
	w.put("/policies/shop?validate=true", `{"user":[{"requests":0}]}`).is(http.StatusUnprocessableEntity)
	// A rehearsal needs no ETag, but a given one must match.
	w.send(request{method: "PUT", path: "/policies/shop?validate=true", token: writer, body: tenAMinute}).is(http.StatusOK)
	w.send(request{method: "PUT", path: "/policies/shop?validate=true", token: writer, ifMatch: `"0-1"`, body: tenAMinute}).is(http.StatusPreconditionFailed)
	w.change("DELETE", "/policies/shop?validate=true", "").is(http.StatusNotFound)
	check.Equal(t, "version", w.policies.Snapshot().Version(), 0)
	w.get("/audit").has("entries.#=0")
}

// TestETagKnowsTheFile: a new configuration file changes the ETags of the resources that it
// changes.
func TestETagKnowsTheFile(t *testing.T) {
	store := openStore(t)
	other := file()
	other.Clients = map[string]ratelimit.Policy{"app": {User: perMinute(8)}}
	a, b := newInstance(t, "i-1", store, file()), newInstance(t, "i-2", store, other)
	if a.get("/policies/app").header.Get("ETag") == b.get("/policies/app").header.Get("ETag") {
		t.Error("two policies have one ETag")
	}
}

func TestStoreFailureIsSaid(t *testing.T) {
	w := newWorld(t)
	etag := w.get("/settings").header.Get("ETag")
	check.OK(t, w.store.Close())
	w.send(request{method: "PATCH", path: "/settings", token: writer, ifMatch: etag, body: `{"mode":"off"}`}).is(http.StatusServiceUnavailable)
	w.send(request{method: "GET", path: "/audit", token: reader}).is(http.StatusServiceUnavailable)
	w.get("/settings") // the last known state is still returned
	w.get("/top")
}

func TestTimeDoesNotMatterToETags(t *testing.T) {
	w := newWorld(t)
	w.put("/candidates/shop", `{"user":[{"requests":5}]}`).is(http.StatusOK)
	before := w.get("/candidates/shop").header.Get("ETag")
	w.ask("shop", "ada", 10)
	w.clock.Advance(time.Hour)
	check.Equal(t, "ETag", w.get("/candidates/shop").header.Get("ETag"), before)
}
