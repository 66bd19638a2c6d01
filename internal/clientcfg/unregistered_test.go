package clientcfg_test

import (
	"slices"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
)

// TestUnregisteredClients: each unregistered client with any setting is yielded once, whichever
// setting it is, until all its settings are gone. An unreadable client is registered.
func TestUnregisteredClients(t *testing.T) {
	const limit = `{"user":[{"requests":3}]}`
	here := []string{"here", "broken"}
	p := compile(t, clientcfg.PolicySet{})
	apply := func(changes ...clientcfg.Change) {
		t.Helper()
		next, err := p.Apply(entry(p.Version()+1, changes...))
		check.OK(t, err)
		p = next
	}
	var changes []clientcfg.Change
	for _, id := range append([]string{"all", "two"}, here...) {
		changes = append(changes, stored("policies/"+id, limit), stored("overrides/"+id+" ada", limit), stored("candidates/"+id, limit))
	}
	apply(append(changes, stored("policies/policy", limit), stored("overrides/override ada", limit), stored("overrides/override bob", limit),
		stored("candidates/candidate", limit), stored("candidates/_default", limit))...)

	d, err := clientcfg.ReadDirectory(t.Context(), storeOf(t, named("here"), clientcfg.Client{ID: "broken"}))
	check.OK(t, err)
	check.Equal(t, "clients that cannot be read", len(d.Unreadable()), 1)
	unregistered := func(want ...string) {
		t.Helper()
		check.Equal(t, "unregistered", slices.Sorted(p.Unregistered(d)), want)
	}
	unregistered("all", "candidate", "override", "policy", "shop", "two")
	check.Equal(t, "in the file", p.UnregisteredInFile(d), []string{"shop"})
	check.Equal(t, "missing", d.Missing([]string{"two", "here", "all", "broken"}), []string{"two", "all"})

	apply(stored("policies/policy", "null"), stored("overrides/override ada", "null"), stored("policies/two", "null"), stored("candidates/candidate", "null"))
	unregistered("all", "override", "shop", "two")
	apply(stored("overrides/override bob", "null"), stored("overrides/two ada", "null"))
	unregistered("all", "shop", "two")
	apply(stored("candidates/two", "null"))
	unregistered("all", "shop")

	d, err = clientcfg.ReadDirectory(t.Context(), storeOf(t, named("all"), named("shop")))
	check.OK(t, err)
	unregistered("broken", "here")
	for range p.Unregistered(d) {
		break // the loop may stop early
	}
}
