package admin_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
)

// TestPartOfAVersion: an instance that started with a part of a version says so beside its number, and shows
// what it can of an entry of a newer release.
func TestPartOfAVersion(t *testing.T) {
	store := openStore(t)
	err := store.AppendPolicyEntry(t.Context(), clientcfg.PolicyEntry{
		AuditEntry: clientcfg.AuditEntry{Version: 1, ID: "a", At: noon, Action: "update", Target: "policies/shop"},
		Changes:    []clientcfg.Change{{Target: "policies/shop", Before: json.RawMessage("null"), After: json.RawMessage(`{"burst":5}`)}},
	})
	check.OK(t, err)
	w := newInstance(t, "i-1", store, file())
	for _, path := range []string{"/policies", "/candidates"} {
		a := w.get(path)
		a.is(http.StatusOK)
		equal(t, path+": version", a.at("version"), any(1.0))
		equal(t, path+": left out", a.at("left_out"), any(1.0))
	}
	a := w.get("/instances")
	equal(t, "left out", a.at("instances", 0, "policies", "left_out"), any(1.0))
	equal(t, "current", a.at("instances", 0, "policies", "current"), any(false))
}
