package clientcfg

import "slices"

// Has reports whether a client of that ID is registered, also if it cannot be read.
func (d *Directory) Has(id string) bool {
	if _, ok := d.clients.Get(id); ok {
		return true
	}
	_, unreadable := d.unreadable[id]
	return unreadable
}

// Unregistered returns the clients, ordered, that have a policy in the configuration file and are not
// registered: deleted, not registered yet, or misspelt there.
func (p *PolicySnapshot) Unregistered(d *Directory) (ids []string) {
	for id := range p.Base().Clients {
		if !d.Has(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
