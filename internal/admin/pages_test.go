package admin_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
)

// pages returns the names on all pages of a list, and how many pages there are. A page that is not
// the last must be full.
func (w *instance) pages(path, list, name string, limit int) (names []string, pages int) {
	w.t.Helper()
	for after := ""; ; {
		a := w.get(path + after)
		items := a.at(list).([]any)
		for _, item := range items {
			names = append(names, fmt.Sprint(item.(map[string]any)[name]))
		}
		pages++
		next, more := a.at("next").(string)
		if !more {
			return names, pages
		}
		check.Equal(w.t, path+": items", len(items), limit)
		after = map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")] + "after=" + url.QueryEscape(next)
	}
}

// set makes one change of the policies, with an entry without targets in the trail.
func (w *instance) set(changes ...clientcfg.Change) {
	w.t.Helper()
	_, err := w.policies.Change(w.t.Context(), func(*clientcfg.PolicySnapshot) (clientcfg.Event, error) {
		return clientcfg.Event{At: w.clock.Now(), Action: "update", Changes: changes}, nil
	})
	check.OK(w.t, err)
}

// TestListsArePaged: with or without a filter, each item appears once and in order, and no page is
// larger than allowed.
func TestListsArePaged(t *testing.T) {
	w := newWorld(t)
	var changes []clientcfg.Change
	var policies, candidates []string
	for i := range 1100 {
		id := fmt.Sprintf("client-%04d", 1099-i)
		policy, err := clientcfg.SetTarget(clientcfg.PolicyTarget(id), &clientcfg.Value{Policy: ratelimit.Policy{Trusted: true}})
		check.OK(t, err)
		changes, policies = append(changes, policy), append(policies, id)
		if i%10 == 0 {
			candidate, err := clientcfg.SetTarget(clientcfg.CandidateTarget(id), &clientcfg.Value{Policy: ratelimit.Policy{User: perMinute(5)}})
			check.OK(t, err)
			changes, candidates = append(changes, candidate), append(candidates, id)
		}
	}
	w.set(changes...)
	slices.Sort(policies)
	slices.Sort(candidates)
	unregistered, listed := policies, append([]string{"app"}, policies...) // app has one in the configuration file
	for _, name := range []string{"silver", "gold", "a/b", "bronze"} {
		w.create("/tiers/"+url.PathEscape(name), `{}`).is(http.StatusOK)
	}
	for id, labels := range map[string]string{
		"shop": `{"team": "payments", "zone": "a"}`, "app": `{"team": "payments"}`, "viewer": `{"team": "data", "zone": "b"}`,
	} {
		w.patch("/clients/"+id, `{"labels": `+labels+`}`).is(http.StatusOK)
	}
	words := strings.Fields
	for _, tt := range []struct {
		path, list, name string
		limit            int
		want             []string
	}{
		{"/policies", "policies", "client_id", 1000, listed},
		{"/policies?limit=700", "policies", "client_id", 700, listed},
		{"/policies?limit=1&prefix=app", "policies", "client_id", 1, words("app")},
		{"/policies?limit=30&prefix=client-00", "policies", "client_id", 30, policies[:100]},
		{"/policies?prefix=none", "policies", "client_id", 1000, nil},
		{"/candidates", "candidates", "client_id", 1000, candidates},
		{"/candidates?limit=7&prefix=client-00", "candidates", "client_id", 7, candidates[:10]},
		{"/unregistered", "unregistered", "client_id", 1000, unregistered},
		{"/unregistered?limit=3&prefix=client-001", "unregistered", "client_id", 3, unregistered[10:20]},
		{"/tiers?limit=3", "tiers", "name", 3, words("a/b bronze gold silver")},
		{"/clients?limit=2", "clients", "client_id", 2, words(odd + " app ops shop viewer")},
		{"/clients?label=team=payments", "clients", "client_id", 100, words("app shop")},
		{"/clients?label=team%3Dpayments&label=zone", "clients", "client_id", 100, words("shop")},
		{"/clients?label=team&limit=2", "clients", "client_id", 2, words("app shop viewer")},
		{"/clients?label=zone&prefix=s", "clients", "client_id", 100, words("shop")},
		{"/clients?label=team=pay", "clients", "client_id", 100, nil},
		{"/users", "users", "username", 100, words("ada ann eve rob")},
		{"/users?limit=2", "users", "username", 2, words("ada ann eve rob")},
		{"/users?prefix=a", "users", "username", 100, words("ada ann")},
		{"/users?prefix=ada", "users", "username", 100, words("ada")},
		{"/users?prefix=a&limit=1", "users", "username", 1, words("ada ann")},
		{"/users?prefix=x", "users", "username", 100, nil},
	} {
		got, pages := w.pages(tt.path, tt.list, tt.name, tt.limit)
		check.Equal(t, tt.path, got, tt.want)
		check.Equal(t, tt.path+": pages", pages, max((len(tt.want)+tt.limit-1)/tt.limit, 1))
	}
	for _, bad := range []string{
		"/policies?limit=0", "/policies?limit=1001", "/policies?offset=1", "/users?limit=0", "/users?reason=x", "/unregistered?label=a",
		"/clients?label=team&label=zone&prefix=a&prefix=s", "/clients?label=", "/clients?label=a+b", "/clients?label=team&label=Team", "/clients?labels=team",
		"/changes?limit=0", "/changes?limit=10001", "/changes?limit=x", "/changes?page=1",
	} {
		w.send(request{method: http.MethodGet, path: bad, token: reader}).is(http.StatusUnprocessableEntity)
	}
	w.send(request{method: "GET", path: "/unregistered", token: "no-scope"}).is(http.StatusForbidden)
}

// TestPagesOfWhatIsSet: the settings are read in pages, in the order of a limits file, including
// temporary removals. All pages have the ETag of the whole.
func TestPagesOfWhatIsSet(t *testing.T) {
	w := newWorld(t)
	w.changes("", `{"changes":[{"target":"settings","value":{"mode":"off"}},{"target":"tiers/gold","value":{"user":[{"requests":42}]}},`+
		`{"target":"tiers/a","value":{}},{"target":"policies/shop","value":{"tier":"gold"}},{"target":"policies/app","value":{}},`+
		`{"target":"overrides/shop ada","value":{"user":[{"requests":1}]}},{"target":"candidates/_default","value":{"user":[{"requests":1}]}}]}`).is(http.StatusOK)
	w.change("DELETE", "/policies/app?for=1h", "").is(http.StatusNoContent)
	w.put("/policies/shop?for=1h", `{"tier":"gold"}`).is(http.StatusOK)
	want := []string{"settings", "tiers/a", "tiers/gold", "policies/app", "policies/shop", "overrides/shop ada", "candidates/_default"}
	for _, limit := range []int{1, 2, 3, 7, 10_000} {
		got, _ := w.pages(fmt.Sprint("/changes?limit=", limit), "targets", "target", limit)
		check.Equal(t, fmt.Sprint("targets by ", limit), got, want)
	}
	check.Equal(t, "ETag", w.get("/changes?limit=1").header.Get("ETag"), w.get("/changes").header.Get("ETag"))
	check.Equal(t, "all", len(w.get("/changes").at("targets").([]any)), len(want))
}
