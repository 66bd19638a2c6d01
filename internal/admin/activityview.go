package admin

import (
	"context"
	"time"

	"oauth-server/internal/adminapi"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter/activity"
)

// activityOf sums up the decisions of the last ten minutes about one client, or about all clients
// that the candidate for the default limits was tried on. It leaves out decisions from before
// since, because they belong to an earlier candidate.
func (s *Server) activityOf(ctx context.Context, name string, since time.Time) adminapi.Activity {
	r := s.activity(ctx)
	v := adminapi.Activity{Since: r.Since}
	for _, c := range r.Clients {
		if !c.TriedSince.Equal(since) {
			c.CandidateCounts = activity.CandidateCounts{}
		}
		switch {
		case name == c.ClientID:
			v.Counts = c.Counts
		case name == clientcfg.GlobalCandidate && c.Tried > 0:
			v.Counts = v.Plus(c.Counts)
			v.Clients = append(v.Clients, adminapi.ClientCounts{ClientID: c.ClientID, Counts: c.Counts})
		}
	}
	v.Clients = v.Clients[:min(len(v.Clients), maxListed)]
	return v
}
