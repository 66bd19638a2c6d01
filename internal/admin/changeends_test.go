package admin_test

import (
	"net/http"
	"testing"

	"oauth-server/internal/check"
)

// TestBulkChangeOfWhatIsTemporary: the plan of a change of several targets shows which ones it makes
// permanent, and which ones get another end.
func TestBulkChangeOfWhatIsTemporary(t *testing.T) {
	w := newWorld(t)
	end := any("2026-03-01T13:00:00Z")
	w.put("/policies/shop?for=1h", `{"trusted":true}`).is(http.StatusOK)
	a := w.changes("?validate=true", `{"for":"2h","changes":[{"target":"policies/shop","value":{"trusted":true}}]}`).is(http.StatusOK)
	equal(t, "until", a.at("changes", 0, "until"), any("2026-03-01T14:00:00Z"))
	equal(t, "was until", a.at("changes", 0, "was_until"), end)

	note := `{"changes":[{"target":"policies/shop","value":{"note":"x"}},{"target":"policies/app","value":{"note":"x"}}]}`
	for _, query := range []string{"?validate=true", ""} {
		a = w.changes(query, note).is(http.StatusOK)
		equal(t, "until", a.at("changes", 0, "until"), nil)
		equal(t, "was until", a.at("changes", 0, "was_until"), end)
		equal(t, "the other was until", a.at("changes", 1, "was_until"), nil)
	}
	equal(t, "until", w.get("/policies/shop").at("meta", "until"), nil)

	a = w.undo("2/undo?validate=true").is(http.StatusOK)
	equal(t, "comes back until", a.at("changes", 0, "until"), end)
	equal(t, "was until", a.at("changes", 0, "was_until"), nil)
}

// TestUndoThatChangesAnEndOnly: targets that were only made permanent are temporary again, and are
// shown.
func TestUndoThatChangesAnEndOnly(t *testing.T) {
	w := newWorld(t)
	w.put("/policies/shop?for=1h", `{"trusted":true}`).is(http.StatusOK)
	w.changes("", `{"changes":[{"target":"policies/shop","value":{"trusted":true}}]}`).is(http.StatusOK)
	equal(t, "until", w.get("/policies/shop").at("meta", "until"), nil)
	a := w.undo("2/undo").is(http.StatusOK)
	equal(t, "target", a.at("changes", 0, "target"), any("policies/shop"))
	equal(t, "until", a.at("changes", 0, "until"), any("2026-03-01T13:00:00Z"))
	e := w.newest()
	equal(t, "entry", e.Action+" "+e.Target, "undo policies/shop")
	check.Equal(t, "more", len(e.More), 0)
}
