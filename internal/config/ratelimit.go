package config

import (
	"maps"
	"slices"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/strict/fielderr"
)

// PolicyPath is the path of a client's policy, for errors that other packages report.
func PolicyPath(clientID string) string { return fielderr.Join("rate_limit.clients", clientID) }

// check reports the problems found by internal/ratelimit. It also reports values that are given but
// empty, which internal/ratelimit treats as absent.
func (r *RateLimit) check(es *fielderr.Errors) {
	*es = append(*es, fielderr.Of(r.Validate()).Under("rate_limit")...)
	if r.Mode == ratelimit.Unset {
		es.Add("rate_limit.mode", "must be enforce, dry_run or off")
	}
	for _, id := range slices.Sorted(maps.Keys(r.Clients)) {
		p := r.Clients[id]
		checkWritten(es, PolicyPath(id)+".user", p.User)
		checkWritten(es, PolicyPath(id)+".client", p.Client)
		checkWritten(es, PolicyPath(id)+".total", p.Total)
		checkWritten(es, PolicyPath(id)+".source", p.Source)
	}
}

func checkWritten(es *fielderr.Errors, path string, list []ratelimit.Limit) {
	if list != nil && len(list) == 0 {
		es.Add(path, "needs at least one limit; to never limit the client, set trusted: true")
	}
}
