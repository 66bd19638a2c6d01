package app

import (
	"maps"
	"slices"

	"oauth-server/internal/config"
	"oauth-server/internal/fielderr"
)

// checkPolicies finds policies of clients that do not exist: most likely a
// client_id is misspelt, and its limit would silently not apply.
func (s *Server) checkPolicies() error {
	var unknown fielderr.Errors
	for _, id := range slices.Sorted(maps.Keys(s.cfg.RateLimit.Clients)) {
		if _, ok := s.clients.Client(id); !ok {
			unknown.Add(config.PolicyPath(id), "there is no client of that name in the store")
		}
	}
	return unknown.Err()
}
