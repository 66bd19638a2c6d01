package clientcfg

import (
	"iter"
	"maps"
	"slices"
)

// Has reports whether a client with that ID is registered, readable or not.
func (d *Directory) Has(id string) bool {
	if _, ok := d.clients.Get(id); ok {
		return true
	}
	_, unreadable := d.unreadable[id]
	return unreadable
}

// Missing returns the given clients that are not registered, in the same order.
func (d *Directory) Missing(ids []string) (missing []string) {
	for _, id := range ids {
		if !d.Has(id) {
			missing = append(missing, id)
		}
	}
	return missing
}

// UnregisteredInFile returns, sorted, the clients with a policy in the configuration file that are
// not registered: deleted, not registered yet, or misspelled in the file. The cost depends only on
// the file.
func (p *PolicySnapshot) UnregisteredInFile(d *Directory) []string {
	return d.Missing(slices.Sorted(maps.Keys(p.Base().Clients)))
}

// Unregistered yields, once each and in no particular order, the unregistered clients with a
// policy, overrides or a candidate: clients in the configuration file, and deleted clients that
// operators had set limits for. It looks at all of these limits.
func (p *PolicySnapshot) Unregistered(d *Directory) iter.Seq[string] {
	return func(yield func(string) bool) {
		for id := range p.live.Owners() {
			if !d.Has(id) && !yield(id) {
				return
			}
		}
		for id := range p.set.Candidates.Keys() {
			if id != GlobalCandidate && !p.live.Owns(id) && !d.Has(id) && !yield(id) {
				return
			}
		}
	}
}
