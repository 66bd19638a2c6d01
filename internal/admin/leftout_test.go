package admin_test

import (
	"net/http"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	datastore "oauth-server/internal/store"
)

// TestPartOfAVersion: an instance that leaves out a target says so beside the version. Setting the
// target repairs it.
func TestPartOfAVersion(t *testing.T) {
	store := openStore(t)
	_, err := store.Append(t.Context(), datastore.Entry{Number: 1, Value: []byte("{}")},
		datastore.Write{Table: clientcfg.PoliciesTable, Record: datastore.Record{Key: "policies/shop", Value: []byte(`{"burst":5}`)}})
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
	w.change("DELETE", "/policies/shop", "").is(http.StatusNoContent)
	equal(t, "left out", w.get("/policies").at("left_out"), nil)
}
