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
		method: "PUT", path: "/candidates/shop", token: writer, ifNoneMatch: "*", contentType: "application/json",
		body: `{"client":[{"requests":3}],"note":"from May on"}`,
	}).is(http.StatusOK)
	equal(t, "passed", w.ask("shop", "", 8), 8)
	equal(t, "passed", w.ask("shop", "ada", 5), 5) // users are not tried
	a := w.get("/candidates/shop")
	equal(t, "tried", a.at("activity", "tried"), any(8.0))
	equal(t, "would be denied", a.at("activity", "candidate_would_deny"), any(5.0))
	equal(t, "live", a.at("activity", "allowed"), any(13.0))
	equal(t, "denied live", a.at("activity", "denied"), any(0.0))
	equal(t, "since", a.at("since"), any("2026-03-01T12:00:00Z"))
	equal(t, "in the list of clients", w.get("/clients?after=ops").at("clients", 0, "candidate"), any(true))
	equal(t, "listed", w.get("/candidates").at("candidates", 0, "client_id"), any("shop"))
}

func TestAnotherCandidateBeginsAnew(t *testing.T) {
	w := newWorld(t)
	w.put("/candidates/shop", `{"client":[{"requests":3}]}`).is(http.StatusOK)
	w.ask("shop", "", 8)
	w.clock.Advance(time.Second)
	w.put("/candidates/_default", `{"client":[{"requests":3}]}`).is(http.StatusOK)
	w.ask("ops", "", 4)
	for _, name := range []string{"shop", "_default"} {
		equal(t, "tried before it is replaced", w.get("/candidates/"+name).at("activity", "tried") != any(0.0), true)
		w.clock.Advance(time.Second)
		w.put("/candidates/"+name, `{"client":[{"requests":100}]}`).is(http.StatusOK)
		a := w.get("/candidates/" + name)
		equal(t, "tried before the first request", a.at("activity", "tried"), any(0.0))
		equal(t, "would be denied before the first request", a.at("activity", "candidate_would_deny"), any(0.0))
	}
	equal(t, "live", w.get("/candidates/shop").at("activity", "allowed"), any(8.0))
	w.ask("shop", "", 1)
	equal(t, "would be denied", w.get("/candidates/shop").at("activity", "candidate_would_deny"), any(0.0))
	equal(t, "tried", w.get("/candidates/shop").at("activity", "tried"), any(1.0))
}

func TestPromoteMakesTheCandidateLive(t *testing.T) {
	w := newWorld(t)
	w.put("/policies/shop", `{"trusted":true,"user":[{"requests":50}],"note":"stays"}`).is(http.StatusOK)
	w.put("/candidates/shop", `{"client":[{"requests":3}]}`).is(http.StatusOK)
	a := w.change("POST", "/candidates/shop/promote", "").is(http.StatusOK)
	equal(t, "trusted", a.at("trusted"), any(false))
	equal(t, "client", a.at("client", 0, "requests"), any(3.0))
	equal(t, "user", a.at("user", 0, "requests"), any(50.0))
	equal(t, "note", a.at("note"), any("stays"))
	equal(t, "ETag", a.header.Get("ETag"), w.get("/policies/shop").header.Get("ETag"))
	equal(t, "passed", w.ask("shop", "", 5), 3)
	w.send(request{method: "GET", path: "/candidates/shop", token: reader}).is(http.StatusNotFound)
	w.change("POST", "/candidates/shop/promote", "").is(http.StatusNotFound)
	entry := w.get("/audit?limit=1")
	equal(t, "action", entry.at("entries", 0, "action"), any("promote"))
	equal(t, "target", entry.at("entries", 0, "target"), any("policies/shop"))
	equal(t, "before", entry.at("entries", 0, "before", "trusted"), any(true))
}

func TestPromoteTheCandidateForTheDefaultLimits(t *testing.T) {
	w := newWorld(t)
	w.put("/candidates/_default", `{"user":[{"requests":4}]}`).is(http.StatusOK)
	w.ask("shop", "ada", 6)
	w.ask("app", "ada", 6) // has its own limits for users
	a := w.get("/candidates/_default")
	equal(t, "tried", a.at("activity", "tried"), any(6.0))
	equal(t, "whom it hits", a.at("activity", "clients", 0, "client_id"), any("shop"))
	equal(t, "how much", a.at("activity", "clients", 0, "candidate_would_deny"), any(2.0))
	a = w.change("POST", "/candidates/_default/promote", "").is(http.StatusOK)
	equal(t, "user", a.at("default", "user", 0, "requests"), any(4.0))
	equal(t, "client", a.at("default", "client", 0, "requests"), any(100.0))
	equal(t, "limit of shop", w.policies.Snapshot().For("shop").User.All()[0].Requests, 4)
	equal(t, "limit of app", w.policies.Snapshot().For("app").User.All()[0].Requests, 7)
}

func TestCandidateIsSharedBetweenInstances(t *testing.T) {
	store := openStore(t)
	a, b := newInstance(t, "i-1", store, file()), newInstance(t, "i-2", store, ratelimit.DefaultSettings())
	a.put("/candidates/shop", `{"client":[{"requests":3}]}`).is(http.StatusOK)
	check.OK(t, b.follower.Refresh(t.Context()))
	a.ask("shop", "", 5)
	b.ask("shop", "", 4)
	b.publish()
	equal(t, "tried on both", a.get("/candidates/shop").at("activity", "tried"), any(9.0))
	equal(t, "would be denied on both", a.get("/candidates/shop").at("activity", "candidate_would_deny"), any(3.0))
}
