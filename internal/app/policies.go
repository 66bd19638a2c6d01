package app

import (
	"maps"
	"slices"

	"oauth-server/internal/config"
)

// checkPolicies finds policies of clients that do not exist: most likely a
// client_id is misspelt, and its limit would silently not apply.
func (s *Server) checkPolicies() error {
	var unknown config.FieldErrors
	for _, id := range slices.Sorted(maps.Keys(s.cfg.RateLimit.Clients)) {
		if _, ok := s.clients.Client(id); !ok {
			unknown = append(unknown, config.Problem{
				Path: config.PolicyPath(id), Message: "there is no client of that name in the store",
			})
		}
	}
	if len(unknown) > 0 {
		return unknown
	}
	return nil
}
