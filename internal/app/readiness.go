package app

import (
	"context"
	"time"

	"oauth-server/internal/httpapi"
)

// staleAfter is how long the store may be silent before somebody is told: the
// clients are looked at every [clientsRefreshEvery], and an answer may take its time.
const staleAfter = 4 * clientsRefreshEvery

// readiness is what /readyz says. It asks nobody: the background loops know
// how the store is, so probes cost nothing and an outage does not make them
// hang. While the store is away, client_credentials and every decision of the
// limiter go on from memory, so the server is degraded, not down.
func (s *Server) readiness(context.Context) httpapi.Readiness {
	silent, policies := time.Since(s.clients.CheckedAt()), s.policies.Status()
	switch {
	case s.stopping.Load():
		return httpapi.Readiness{Status: httpapi.Down, Checks: map[string]string{"server": "stopping"}}
	case policies.Refused():
		return httpapi.Readiness{Status: httpapi.Degraded, Checks: map[string]string{"limits": "those in the store are refused; the last good ones stay"}}
	case s.syncer.Degraded() != nil || policies.Err != nil || silent > staleAfter:
		return httpapi.Readiness{Status: httpapi.Degraded, Checks: map[string]string{"store": "not answering"}}
	}
	return httpapi.Readiness{Status: httpapi.Ready}
}
