package admin_test

import (
	"fmt"
	"net/http"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
)

// TestLimitsOfDeletedClientsAreListed: the list says where the limits come from, for every kind of
// limit. The clients are marked in the lists of policies and candidates, even by instances that
// have not read the deletion yet.
func TestLimitsOfDeletedClientsAreListed(t *testing.T) {
	store, inFile := openStore(t), file()
	inFile.Clients["misspelt"] = ratelimit.Policy{Trusted: true}
	w := newInstance(t, "i-1", store, inFile)
	for _, id := range []string{"policy", "user", "tried"} {
		check.OK(t, store.CreateClient(t.Context(), confidential(id, func(*clientcfg.Client) {}), clientcfg.Event{}))
	}
	w.put("/tiers/gold", tenAMinute).is(http.StatusOK)
	w.put("/policies/policy?for=1h", `{"tier":"gold"}`).is(http.StatusOK)
	w.put("/policies/shop", tenAMinute).is(http.StatusOK)
	w.put("/policies/user/users/ada", `{"user":[{"requests":3}]}`).is(http.StatusOK)
	for _, name := range []string{"tried", "shop", "_default"} {
		w.put("/candidates/"+name, tenAMinute).is(http.StatusOK)
	}
	names := func(a answer, field string) string { return fmt.Sprint(a.at(field)) }
	check.Equal(t, "policies of clients that are registered", names(w.get("/policies"), "unregistered"), "[misspelt]")
	check.Equal(t, "candidates of clients that are registered", names(w.get("/candidates"), "unregistered"), "<nil>")
	late, later := newInstance(t, "i-2", store, inFile), newInstance(t, "i-3", store, inFile)
	for _, id := range []string{"policy", "user", "tried"} {
		check.OK(t, store.DeleteClient(t.Context(), id, clientcfg.Event{}))
	}

	a := w.get("/unregistered")
	check.Equal(t, "version", a.at("version"), any(float64(w.policies.Snapshot().Version())))
	var shown []string
	for i := range a.at("unregistered").([]any) {
		c := a.at("unregistered", i).(map[string]any)
		effective := c["effective"].(map[string]any)
		shown = append(shown, fmt.Sprint(c["client_id"], " ", c["source"], " ", c["candidate"], " ", effective["trusted"], " ", effective["tier"], " ", effective["overrides"], " ", c["until"] != nil))
	}
	check.Equal(t, "unregistered", shown, []string{
		"misspelt file false true <nil> <nil> false",
		"policy api false false gold <nil> true",
		"tried none true false <nil> <nil> false",
		"user none false false <nil> 1 false",
	})
	check.Equal(t, "policies", names(late.get("/policies"), "unregistered"), "[misspelt policy]")
	check.Equal(t, "policies of a page", names(w.get("/policies?prefix=p"), "unregistered"), "[policy]")
	check.Equal(t, "candidates", names(later.get("/candidates"), "unregistered"), "[tried]")
	check.Equal(t, "with the clients", names(w.get("/clients"), "unregistered"), "[misspelt]")

	check.OK(t, store.CreateClient(t.Context(), confidential("tried", func(*clientcfg.Client) {}), clientcfg.Event{}))
	w.change(http.MethodDelete, "/policies/user/users/ada", "").is(http.StatusNoContent)
	late.get("/unregistered").has("unregistered.#=2")
}
