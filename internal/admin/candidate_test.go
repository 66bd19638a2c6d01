package admin_test

import (
	"net/http"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

func TestCandidateIsTriedAndNeverEnforced(t *testing.T) {
	w := newWorld(t)
	w.send(request{method: "GET", path: "/candidates/shop", token: reader}).is(http.StatusNotFound)
	w.send(request{
		method: "PUT", path: "/candidates/shop", token: writer, ifNoneMatch: "*",
		body: `{"client":[{"requests":3}],"note":"from May on"}`,
	}).is(http.StatusOK)
	check.Equal(t, "passed", w.ask("shop", "", 8), 8)
	check.Equal(t, "passed", w.ask("shop", "ada", 5), 5) // users are not tried
	w.get("/candidates/shop").has("activity.tried=8", "activity.candidate_would_deny=5", "activity.allowed=13", "activity.denied=0",
		"since=2026-03-01T12:00:00Z")
	w.get("/clients?after=ops").has("clients.0.candidate=true")
	w.get("/candidates").has("candidates.0.client_id=shop")
}

func TestAnotherCandidateBeginsAnew(t *testing.T) {
	w := newWorld(t)
	w.put("/candidates/shop", `{"client":[{"requests":3}]}`).is(http.StatusOK)
	w.ask("shop", "", 8)
	w.clock.Advance(time.Second)
	w.put("/candidates/_default", `{"client":[{"requests":3}]}`).is(http.StatusOK)
	w.ask("ops", "", 4)
	for _, name := range []string{"shop", "_default"} {
		check.Equal(t, "tried before it is replaced", w.get("/candidates/"+name).at("activity", "tried") != any(0.0), true)
		w.clock.Advance(time.Second)
		w.put("/candidates/"+name, `{"client":[{"requests":100}]}`).is(http.StatusOK)
		w.get("/candidates/"+name).has("activity.tried=0", "activity.candidate_would_deny=0")
	}
	w.get("/candidates/shop").has("activity.allowed=8")
	w.ask("shop", "", 1)
	w.get("/candidates/shop").has("activity.candidate_would_deny=0", "activity.tried=1")
}

func TestPromoteMakesTheCandidateLive(t *testing.T) {
	w := newWorld(t)
	w.put("/policies/shop", `{"trusted":true,"user":[{"requests":50}],"note":"stays"}`).is(http.StatusOK)
	w.put("/candidates/shop", `{"client":[{"requests":3}]}`).is(http.StatusOK)
	a := w.change("POST", "/candidates/shop/promote", "").is(http.StatusOK).has("trusted=false", "client.0.requests=3", "user.0.requests=50",
		"note=stays")
	check.Equal(t, "ETag", a.header.Get("ETag"), w.get("/policies/shop").header.Get("ETag"))
	check.Equal(t, "passed", w.ask("shop", "", 5), 3)
	w.send(request{method: "GET", path: "/candidates/shop", token: reader}).is(http.StatusNotFound)
	w.change("POST", "/candidates/shop/promote", "").is(http.StatusNotFound)
	w.get("/audit?limit=1").has("entries.0.action=promote", "entries.0.target=policies/shop", "entries.0.before.trusted=true")
}

func TestPromoteTheCandidateForTheDefaultLimits(t *testing.T) {
	w := newWorld(t)
	w.put("/candidates/_default", `{"user":[{"requests":4}]}`).is(http.StatusOK)
	w.ask("shop", "ada", 6)
	w.ask("app", "ada", 6) // has its own limits for users
	w.get("/candidates/_default").has("activity.tried=6", "activity.clients.0.client_id=shop", "activity.clients.0.candidate_would_deny=2")
	w.change("POST", "/candidates/_default/promote", "").is(http.StatusOK).has("default.user.0.requests=4", "default.client.0.requests=100")
	check.Equal(t, "limit of shop", w.policies.Snapshot().For("shop").User.All()[0].Requests, 4)
	check.Equal(t, "limit of app", w.policies.Snapshot().For("app").User.All()[0].Requests, 7)
}

func TestCandidateIsSharedBetweenInstances(t *testing.T) {
	store := openStore(t)
	a, b := newInstance(t, "i-1", store, file()), newInstance(t, "i-2", store, ratelimit.DefaultSettings())
	a.put("/candidates/shop", `{"client":[{"requests":3}]}`).is(http.StatusOK)
	check.OK(t, b.follower.Refresh(t.Context()))
	a.ask("shop", "", 5)
	b.ask("shop", "", 4)
	b.publish()
	a.get("/candidates/shop").has("activity.tried=9", "activity.candidate_would_deny=3")
}
