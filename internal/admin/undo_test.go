package admin_test

import (
	"net/http"
	"testing"
	"time"

	"oauth-server/internal/check"
)

func (w *instance) undo(path string) answer {
	w.t.Helper()
	return w.send(request{method: http.MethodPost, path: "/changes/" + path, token: writer})
}

func TestChangeIsUndone(t *testing.T) {
	w := newWorld(t)
	w.put("/policies/shop", `{"client":[{"requests":9}]}`).is(http.StatusOK)
	w.changes("", shopAndApp).is(http.StatusOK)
	a := w.undo("2/undo?validate=true").is(http.StatusOK).has("changes.3.before.client.0.requests=2")
	if a.at("effect", "summary") == "" {
		t.Error("nothing is predicted")
	}
	check.Equal(t, "version", w.policies.Snapshot().Version(), 2)

	w.undo("2/undo?reason=too+strict").is(http.StatusOK)
	p := w.policies.Snapshot()
	check.Equal(t, "shop", p.For("shop").Client.All()[0].Requests, 9)
	check.Equal(t, "app", p.For("app").Trusted, false)
	check.Equal(t, "candidates", p.Set().Candidates.Len(), 0)
	e := w.newest()
	check.Equal(t, "entry", e.Action+" "+e.Target+" "+e.Reason, "undo policies/shop change 2: too strict")

	w.undo("3/undo").is(http.StatusOK)
	check.Equal(t, "undone again", w.policies.Snapshot().For("shop").Client.All()[0].Requests, 3)
	check.Equal(t, "reason", w.newest().Reason, "change 3")
}

// TestUndoOfWhatWasChangedSince: nothing is undone if any target has another value since, and the
// response names the author.
func TestUndoOfWhatWasChangedSince(t *testing.T) {
	store := openStore(t)
	w, other := newInstance(t, "i-1", store, file()), newInstance(t, "i-2", store, file())
	w.changes("", shopAndApp).is(http.StatusOK)
	w.clock.Advance(time.Minute)
	w.patch("/policies/app", `{"note":"x"}`).is(http.StatusOK)
	w.undo("1/undo").is(http.StatusConflict).says("policies/app: change 2 (update by ops at 2026-03-01T12:01:00Z) came later")
	w.undo("1/undo?validate=true").is(http.StatusConflict)
	w.undo("2/undo").is(http.StatusOK) // now it can be undone
	w.undo("1/undo?validate=true").is(http.StatusOK)
	// A change by another instance counts, also a temporary one, but not one that gave the old value back.
	w.put("/policies/shop", `{"trusted":true}`).is(http.StatusOK)
	check.OK(t, other.follower.Refresh(t.Context()))
	other.put("/policies/shop?for=1h", `{}`).is(http.StatusOK)
	w.undo("4/undo").is(http.StatusConflict).says("change 5")
	other.put("/policies/shop", `{"trusted":true}`).is(http.StatusOK)
	w.undo("4/undo?validate=true").is(http.StatusOK)
	other.change("DELETE", "/policies/shop", "").is(http.StatusNoContent)
	// This includes the promoted candidate.
	w.change("POST", "/candidates/shop/promote", "").is(http.StatusOK)
	w.undo("1/undo").is(http.StatusConflict)
	check.Equal(t, "of the promotion", len(w.newest().More), 1)
	w.undo("8/undo").is(http.StatusOK)
	check.Equal(t, "candidates", w.policies.Snapshot().Set().Candidates.Len(), 1)
}

// TestUndoComparesValues: the stores encode JSON differently, and so do a reader and the writer of a
// value.
func TestUndoComparesValues(t *testing.T) {
	onEveryStore(t, func(t *testing.T, store *shared) {
		t.Helper()
		w := newInstance(t, "i-1", store, file())
		w.clock.Advance(time.Since(noon)) // the TTL index goes by the time of the database
		w.put("/policies/shop", `{"note":"R&D <team>"}`).is(http.StatusOK)
		w.patch("/settings", `{"canary_percent":12.5,"note":"<1>"}`).is(http.StatusOK)
		w.put("/policies/shop?for=1h", `{"note":"<1 h>"}`).is(http.StatusOK)
		w.undo("2/undo").is(http.StatusOK)
		w.undo("3/undo").is(http.StatusOK)
		w.undo("1/undo").is(http.StatusOK)
		check.Equal(t, "set", w.policies.Snapshot().Set().Clients.Len(), 0)
	})
}

// TestUndoAfterUndo: a change and its undo cancel out, and so does the undo of the undo. So the
// advice in the error for a refused undo works.
func TestUndoAfterUndo(t *testing.T) {
	w := newWorld(t)
	for _, n := range []string{"1", "2"} {
		w.put("/policies/shop", `{"client":[{"requests":`+n+`}]}`).is(http.StatusOK)
	}
	w.undo("2/undo").is(http.StatusOK)
	w.undo("2/undo").is(http.StatusConflict).says("change 3 (undo by ops at")
	w.undo("3/undo").is(http.StatusOK)
	w.undo("1/undo").is(http.StatusConflict).says("change 4 (undo by ops at")
	w.undo("4/undo").is(http.StatusOK)
	w.undo("1/undo?reason=too+strict").is(http.StatusOK)
	check.Equal(t, "set", w.policies.Snapshot().Set().Clients.Len(), 0)
	w.undo("6/undo").is(http.StatusOK)
	w.undo("1/undo").is(http.StatusOK) // once more
}

// TestUndoOfAnEnd: an undo that only restores an end can be undone.
func TestUndoOfAnEnd(t *testing.T) {
	w := newWorld(t)
	until := func() any { return w.get("/policies/shop").at("meta", "until") }
	w.put("/policies/shop?for=2h", `{"trusted":true}`).is(http.StatusOK)
	w.put("/policies/shop", `{"trusted":true}`).is(http.StatusOK)
	for _, undone := range []string{"2", "4"} {
		w.undo(undone + "/undo").is(http.StatusOK).has("changes.0.target=policies/shop")
		check.Equal(t, "entry", w.newest().Target, "policies/shop")
		check.Equal(t, "end", until(), any("2026-03-01T14:00:00Z"))
		w.undo("1/undo?validate=true").is(http.StatusOK)
		again := map[string]string{"2": "3", "4": "5"}[undone]
		w.undo(again + "/undo").is(http.StatusOK)
		check.Equal(t, "end", until(), nil)
		w.undo("1/undo").is(http.StatusConflict)
	}
	check.Equal(t, "trusted", w.policies.Snapshot().For("shop").Trusted, true)
}

func TestWhatCannotBeUndone(t *testing.T) {
	w := newWorld(t)
	w.put("/policies/shop", `{"trusted":true}`).is(http.StatusOK)
	w.send(request{method: "DELETE", path: "/clients/shop/counters", token: writer}).is(http.StatusNoContent)
	w.undo("2/undo").is(http.StatusConflict).says("a reset of counters cannot be undone")
	for _, path := range []string{"0/undo", "9/undo", "x/undo"} {
		w.undo(path).is(http.StatusNotFound)
	}
	w.send(request{method: "POST", path: "/changes/1/undo", token: reader}).is(http.StatusForbidden)
	// An undo that locks out an operator is refused like any other change.
	daily := `{"client":[{"name":"daily","requests":1,"window":"24h"}]}`
	w.put("/policies/ops", `{"trusted":true}`).is(http.StatusOK)
	w.patch("/settings", `{"default":`+daily+`}`).is(http.StatusOK)
	w.undo("3/undo").is(http.StatusConflict).says("lock out")
	// A swept entry is gone.
	w.clock.Advance(500 * 24 * time.Hour)
	check.OK(t, w.api.SweepAudit(t.Context()))
	w.undo("3/undo").is(http.StatusNotFound)
	check.Equal(t, "version", w.policies.Snapshot().Version(), 4)
}

// TestUndoAndReadsWithoutTheStore: request errors are reported before the trail is read, and a
// failed read says nothing about changes.
func TestUndoAndReadsWithoutTheStore(t *testing.T) {
	w := newWorld(t)
	w.put("/policies/shop", `{"trusted":true}`).is(http.StatusOK)
	check.OK(t, w.store.Close())
	w.undo("1/undo?nope=1").is(http.StatusUnprocessableEntity).says("nope")
	w.undo("1/undo?validate=perhaps").is(http.StatusUnprocessableEntity).says("validate")
	w.undo("1/undo").is(http.StatusServiceUnavailable).says("the change may or may not have been made")
	w.send(request{method: http.MethodGet, path: "/audit", token: reader}).is(http.StatusServiceUnavailable).says("the store is unavailable; try again").has(
		"detail=the store is unavailable; try again")
}

// TestBulkChangeOfWhatIsTemporary: the plan of a change of several targets shows which ones it makes
// permanent, and which ones get another end.
func TestBulkChangeOfWhatIsTemporary(t *testing.T) {
	w := newWorld(t)
	const end = "2026-03-01T13:00:00Z"
	w.put("/policies/shop?for=1h", `{"trusted":true}`).is(http.StatusOK)
	w.changes("?validate=true", `{"for":"2h","changes":[{"target":"policies/shop","value":{"trusted":true}}]}`).is(http.StatusOK).has(
		"changes.0.until=2026-03-01T14:00:00Z", "changes.0.was_until="+end)

	note := `{"changes":[{"target":"policies/shop","value":{"note":"x"}},{"target":"policies/app","value":{"note":"x"}}]}`
	for _, query := range []string{"?validate=true", ""} {
		w.changes(query, note).is(http.StatusOK).has("changes.0.until=null", "changes.0.was_until="+end, "changes.1.was_until=null")
	}
	w.get("/policies/shop").has("meta.until=null")

	w.undo("2/undo?validate=true").is(http.StatusOK).has("changes.0.until="+end, "changes.0.was_until=null")
}
