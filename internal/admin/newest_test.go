package admin_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
)

// TestWhatAnInstanceAnswersIsTheNewest: every instance shows a change at once, whichever instance
// made it.
func TestWhatAnInstanceAnswersIsTheNewest(t *testing.T) {
	store := openStore(t)
	all := []*instance{newInstance(t, "i-1", store, file()), newInstance(t, "i-2", store, file())}
	for i := range 4 {
		one, other := all[i%2], all[(i+1)%2]
		for _, path := range []string{"/policies/shop", "/settings", "/candidates/shop"} {
			body := `{"note":"` + strconv.Itoa(i) + `","client":[{"requests":5}]}`
			if path == "/settings" {
				body = `{"note":"` + strconv.Itoa(i) + `"}`
			}
			read := one.send(request{method: "GET", path: path, token: reader})
			r := request{method: "PUT", path: path, token: writer, ifMatch: read.header.Get("ETag"), body: body}
			if read.status == http.StatusNotFound {
				r.ifMatch, r.ifNoneMatch = "", "*"
			}
			other.send(r).is(http.StatusOK)
			check.Equal(t, "note", one.get(path).at("note"), any(strconv.Itoa(i)))
		}
		check.Equal(t, "in the list", one.get("/policies").at("version"), one.get("/candidates").at("version"))
		check.Equal(t, "note in the list", other.get("/policies?prefix=shop").at("policies", 0, "note"), any(strconv.Itoa(i)))
		one.get("/clients?prefix=shop").has("clients.0.effective.client.0.requests=5")
	}
	check.Equal(t, "version", all[0].policies.Snapshot().Version(), 12)
}

// TestAgeOfWhatIsNotKnownToBeTheNewest: while the store is unreachable, the last known state is
// returned with its age.
func TestAgeOfWhatIsNotKnownToBeTheNewest(t *testing.T) {
	w := newWorld(t)
	w.put("/candidates/shop", `{"client":[{"requests":3}]}`).is(http.StatusOK)
	paths := []string{"/settings", "/policies/app", "/policies", "/candidates/shop", "/candidates", "/clients"}
	for _, path := range paths {
		check.Equal(t, "age of "+path, w.get(path).header.Get("Age"), "")
	}
	check.OK(t, w.store.Close())
	for _, path := range paths {
		if w.get(path).header.Get("Age") == "" {
			t.Errorf("%s has no age", path)
		}
	}
}

// TestRefusalSaysWhoChangedWhat: a conflict is always real, and the response describes it.
func TestRefusalSaysWhoChangedWhat(t *testing.T) {
	store := openStore(t)
	a, b := newInstance(t, "i-1", store, file()), newInstance(t, "i-2", store, file())
	a.put("/policies/shop", `{"client":[{"requests":9}]}`).is(http.StatusOK)
	etag := b.get("/policies/shop").header.Get("ETag")
	for _, requests := range []string{"10", "20"} {
		read := a.get("/policies/shop").header.Get("ETag")
		a.send(request{
			method: "PUT", path: "/policies/shop?reason=sale", token: "of-a-user", ifMatch: read,
			body: `{"client":[{"requests":` + requests + `}]}`,
		}).is(http.StatusOK)
	}
	a.put("/policies/app", tenAMinute).is(http.StatusOK) // of another client
	b.clock.Advance(3 * time.Second)
	for _, query := range []string{"", "?validate=true"} {
		refused := b.send(request{
			method: "PATCH", path: "/policies/shop" + query, token: writer, ifMatch: etag, body: `{"trusted":true}`,
		}).is(http.StatusPreconditionFailed).says("update by ada (ops) at 2026-03-01T12:00:00Z (change 3)")
		refused.has("conflict.target=policies/shop")
		check.Equal(t, "now", refused.at("conflict", "now"), any(noon.Add(3*time.Second).Format(time.RFC3339)))
		refused.has("conflict.changes.#=2")
		for path, want := range map[string]any{
			"version": 3.0, "action": "update", "target": "policies/shop", "reason": "sale", "at": noon.Format(time.RFC3339), "instance": "i-1",
		} {
			check.Equal(t, path, refused.at("conflict", "changes", 0, path), want)
		}
		refused.has("conflict.changes.0.actor.username=ada", "conflict.changes.0.before.client.0.requests=10",
			"conflict.changes.0.after.client.0.requests=20")
	}
}

func TestRefusalsOfEveryKind(t *testing.T) {
	changed := func(a answer) (all []string) {
		t.Helper()
		for i := range a.is(http.StatusPreconditionFailed).at("conflict", "changes").([]any) {
			action, _ := a.at("conflict", "changes", i, "action").(string)
			target, _ := a.at("conflict", "changes", i, "target").(string)
			all = append(all, action+" "+target)
		}
		return all
	}
	t.Run("removed", func(t *testing.T) {
		w := newWorld(t)
		etag := w.put("/policies/shop", tenAMinute).header.Get("ETag")
		w.change("DELETE", "/policies/shop", "").is(http.StatusNoContent)
		put := request{method: "PUT", path: "/policies/shop", token: writer, ifMatch: etag, body: tenAMinute}
		check.Equal(t, "since it was there", changed(w.send(put)), []string{"delete policies/shop"})
		put.ifMatch = w.get("/policies/shop").header.Get("ETag")
		w.send(put).is(http.StatusOK)
		check.Equal(t, "since it was not there", changed(w.send(put)), []string{"update policies/shop"})
	})
	t.Run("made live", func(t *testing.T) {
		w := newWorld(t)
		etag := w.put("/candidates/shop", `{"client":[{"requests":3}]}`).header.Get("ETag")
		w.put("/policies/shop", tenAMinute).is(http.StatusOK)
		w.change("POST", "/candidates/shop/promote", "").is(http.StatusOK)
		check.Equal(t, "since it was tried", changed(w.send(request{method: "POST", path: "/candidates/shop/promote", token: writer, ifMatch: etag})),
			[]string{"promote candidates/shop"})
	})
	t.Run("there already", func(t *testing.T) {
		w := newWorld(t)
		w.put("/policies/shop", tenAMinute).is(http.StatusOK)
		w.put("/policies/shop", `{}`).is(http.StatusOK)
		put := request{method: "PUT", path: "/policies/shop", token: writer, ifNoneMatch: "*", body: tenAMinute}
		check.Equal(t, "the last change", changed(w.send(put)), []string{"update policies/shop"})
	})
	t.Run("not there", func(t *testing.T) {
		w := newWorld(t)
		for method, path := range map[string]string{"PUT": "/policies/shop", "DELETE": "/candidates/shop"} {
			r := request{method: method, path: path, token: writer, ifMatch: "*"}
			if method == "PUT" {
				r.body = tenAMinute
			}
			a := w.send(r).is(http.StatusPreconditionFailed).says("the resource does not exist")
			check.Equal(t, "conflict", a.at("conflict"), nil)
		}
	})
	t.Run("another file", func(t *testing.T) {
		w := newWorld(t)
		etag, other := w.get("/policies/app").header.Get("ETag"), file()
		other.Clients["app"] = other.Clients["none"]
		check.OK(t, w.policies.Rebase(t.Context(), other, nil))
		put := request{method: "PUT", path: "/policies/app", token: writer, ifMatch: etag, body: tenAMinute}
		check.Equal(t, "changes", len(changed(w.send(put).says("instances have different configuration files"))), 0)
	})
	t.Run("a client and a user", func(t *testing.T) {
		w := newWorld(t)
		client, user := w.get("/clients/shop").header.Get("ETag"), w.get("/users/rob").header.Get("ETag")
		w.change("PATCH", "/clients/shop", `{"client_name":"First"}`).is(http.StatusOK)
		w.change("PATCH", "/clients/shop", `{"client_name":"Second"}`).is(http.StatusOK)
		w.change("PATCH", "/users/rob", `{"operator":"write"}`).is(http.StatusOK)
		check.Equal(t, "client", changed(w.send(request{method: "DELETE", path: "/clients/shop", token: writer, ifMatch: client})),
			[]string{"update " + clientcfg.ClientTarget("shop"), "update " + clientcfg.ClientTarget("shop")})
		check.Equal(t, "user", changed(w.send(request{method: "DELETE", path: "/users/rob", token: writer, ifMatch: user})),
			[]string{"operator " + clientcfg.UserTarget("rob")})
	})
}
