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
	a := w.undo("2/undo?validate=true").is(http.StatusOK)
	equal(t, "before", a.at("changes", 3, "before", "client", 0, "requests"), any(2.0))
	if a.at("effect", "summary") == "" {
		t.Error("nothing is predicted")
	}
	equal(t, "version", w.policies.Snapshot().Version(), 2)

	w.undo("2/undo?reason=too+strict").is(http.StatusOK)
	p := w.policies.Snapshot()
	equal(t, "shop", p.For("shop").Client.All()[0].Requests, 9)
	equal(t, "app", p.For("app").Trusted, false)
	equal(t, "candidates", p.Set().Candidates.Len(), 0)
	e := w.newest()
	equal(t, "entry", e.Action+" "+e.Target+" "+e.Reason, "undo policies/shop change 2: too strict")

	w.undo("3/undo").is(http.StatusOK)
	equal(t, "undone again", w.policies.Snapshot().For("shop").Client.All()[0].Requests, 3)
	equal(t, "reason", w.newest().Reason, "change 3")
}

// Nothing is undone if any of it was changed since, and the answer says by whom.
func TestUndoOfWhatWasChangedSince(t *testing.T) {
	store := openStore(t)
	w, other := newInstance(t, "i-1", store, file()), newInstance(t, "i-2", store, file())
	w.changes("", shopAndApp).is(http.StatusOK)
	w.clock.Advance(time.Minute)
	w.patch("/policies/app", `{"note":"x"}`).is(http.StatusOK)
	w.undo("1/undo").is(http.StatusConflict).says("policies/app: ops did update it in change 2, at 2026-03-01T12:01:00Z")
	w.undo("1/undo?validate=true").is(http.StatusConflict)
	w.undo("2/undo").is(http.StatusOK) // then it can be
	w.undo("1/undo").is(http.StatusConflict).says("ops did undo it in change 3")
	// Removed and made again is changed too, also by another instance.
	w.put("/policies/shop", `{"trusted":true}`).is(http.StatusOK)
	w.change("DELETE", "/policies/shop", "").is(http.StatusNoContent)
	check.OK(t, other.policies.Refresh(t.Context()))
	other.put("/policies/shop", `{}`).is(http.StatusOK)
	other.change("DELETE", "/policies/shop", "").is(http.StatusNoContent)
	w.undo("5/undo").is(http.StatusConflict).says("change 7")
	// So is the candidate that was promoted.
	w.change("POST", "/candidates/shop/promote", "").is(http.StatusOK)
	w.undo("1/undo").is(http.StatusConflict)
	equal(t, "of the promotion", len(w.newest().More), 1)
	w.undo("8/undo").is(http.StatusOK)
	equal(t, "candidates", w.policies.Snapshot().Set().Candidates.Len(), 1)
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
	// An undo that locks an operator out is refused like any other change.
	daily := `{"client":[{"name":"daily","requests":1,"window":"24h"}]}`
	w.put("/policies/ops", `{"trusted":true}`).is(http.StatusOK)
	w.patch("/settings", `{"default":`+daily+`}`).is(http.StatusOK)
	w.undo("3/undo").is(http.StatusConflict).says("lock out")
	// What is swept is not there any more.
	w.clock.Advance(500 * 24 * time.Hour)
	check.OK(t, w.api.SweepAudit(t.Context()))
	w.undo("3/undo").is(http.StatusNotFound)
	equal(t, "version", w.policies.Snapshot().Version(), 4)
}
