package admin

import (
	"context"
	"time"

	"oauth-server/internal/activity"
	"oauth-server/internal/clientcfg"
)

// activityView is what was decided lately: for one client, or for all that a
// candidate for the default limits concerns.
type activityView struct {
	Since time.Time `json:"since"`
	activity.Counts
	// Clients are those of whom the most was or would have been denied; only
	// for the candidate for the default limits.
	Clients []clientCounts `json:"clients,omitempty"`
}

type clientCounts struct {
	ClientID string `json:"client_id"`
	activity.Counts
}

// activityOf sums up what was decided for one client, or for all whose
// requests the candidate for the default limits was tried on.
func (s *Server) activityOf(ctx context.Context, name string) activityView {
	r := s.activity(ctx)
	v := activityView{Since: r.Since}
	for _, c := range r.Clients {
		switch {
		case name == c.ClientID:
			v.Counts = c.Counts
		case name == clientcfg.GlobalCandidate && c.Tried > 0:
			v.Counts = v.Plus(c.Counts)
			v.Clients = append(v.Clients, clientCounts{c.ClientID, c.Counts})
		}
	}
	v.Clients = v.Clients[:min(len(v.Clients), maxListed)]
	return v
}
