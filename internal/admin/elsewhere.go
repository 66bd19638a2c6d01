package admin

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter/activity"
	"oauth-server/internal/strict"
)

// This file is for clients that are registered with another server: see Options.ClientsElsewhere.

// listed yields the clients with greater IDs, sorted. If clients are registered elsewhere, it
// yields the ones with recent requests or a policy. Only their IDs are known.
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

// unseen returns a warning for each client that may be misspelled: the change sets something for
// it, nothing was set for it before, it is not registered, and it has no recorded requests.
func (s *Server) unseen(ch *change, recent activity.Report) (warnings []string) {
	if !s.o.ClientsElsewhere {
		return nil
	}
	directory, known, of := s.o.Clients.Directory(), map[string]bool{}, map[string]bool{}
	for i := range ch.made {
		if r, is := resourceOf(ch.made[i].Target); is && !ch.made[i].IsNull() {
			if id := clientOf(r); id != "" && !directory.Has(id) {
				of[id] = true
			}
		}
	}
	if len(of) == 0 {
		return nil
	}
	for id := range ch.before.Unregistered(directory) {
		known[id] = true
	}
	for _, c := range recent.Clients {
		known[c.ClientID] = true
	}
	maps.DeleteFunc(of, func(id string, _ bool) bool { return known[id] })
	all := slices.Sorted(maps.Keys(known))
	for _, id := range slices.Sorted(maps.Keys(of)) {
		if len(warnings) == named {
			return append(warnings, fmt.Sprintf("The same is true of %d more clients.", len(of)-named))
		}
		text := fmt.Sprintf("No request of the client %q is recorded in the last 10 minutes, and nothing was set for it before", id)
		warnings = append(warnings, text+cmp.Or(strict.Suggest(id, all), "."))
	}
	return warnings
}
