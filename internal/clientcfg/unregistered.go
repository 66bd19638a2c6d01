package clientcfg

import (
	"iter"
	"slices"
)

// Has reports whether a client of that ID is registered, also if it cannot be read.
func (d *Directory) Has(id string) bool {
	if _, ok := d.clients.Get(id); ok {
		return true
	}
	_, unreadable := d.unreadable[id]
	return unreadable
}

// Missing returns those of the clients that are not registered, in their order.
func (d *Directory) Missing(ids []string) (missing []string) {
	for _, id := range ids {
		if !d.Has(id) {
			missing = append(missing, id)
		}
	}
	return missing
}

// UnregisteredInFile returns the clients, ordered, that have a policy in the configuration file and are not
// registered: deleted, not registered yet, or misspelt there. It costs what the file has.
func (p *PolicySnapshot) UnregisteredInFile(d *Directory) (ids []string) {
	for id := range p.Base().Clients {
		if !d.Has(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Unregistered yields, once each and in no order, the clients that have a policy, overrides or a candidate and
// are not registered: those of the configuration file, and those that were deleted after operators had set
// limits for them. It looks at all of these limits.
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
