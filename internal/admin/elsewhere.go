package admin

import (
	"iter"
	"maps"
	"slices"

	"oauth-server/internal/activity"
	"oauth-server/internal/clientcfg"
)

// This file is for clients that are registered with another server: see Options.ClientsElsewhere.

// listed yields the clients whose ID is greater, ordered. Of those that are registered elsewhere they are the ones with
// recent requests or a policy, of which nothing but the ID is known.
func (s *Server) listed(after string, d *clientcfg.Directory, p *clientcfg.PolicySnapshot, counts map[string]activity.Counts) iter.Seq[*clientcfg.Client] {
	if !s.o.ClientsElsewhere {
		return d.After(after)
	}
	ids := map[string]*clientcfg.Client{}
	for id := range maps.Keys(counts) {
		ids[id] = nil
	}
	for id := range p.AllClients() {
		ids[id] = nil
	}
	for cl := range d.After("") {
		ids[cl.ID] = cl
	}
	return func(yield func(*clientcfg.Client) bool) {
		for _, id := range slices.Sorted(maps.Keys(ids)) {
			cl := ids[id]
			if cl == nil {
				cl = &clientcfg.Client{ID: id}
			}
			if id > after && !yield(cl) {
				return
			}
		}
	}
}
