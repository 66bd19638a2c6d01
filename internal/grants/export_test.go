package grants

import (
	"time"

	"oauth-server/internal/ratelimit"
)

// SetRefreshTokenLifetime changes the setting of a running service.
func (s *Service) SetRefreshTokenLifetime(d time.Duration) { s.opts.RefreshTokenLifetime = d }

// SetMeterKeys empties the meters of a service and gives each room for so many keys.
func (s *Service) SetMeterKeys(n int) {
	for _, m := range []*meter{s.clientFailures.meter, s.signIns.meter, s.signIns.successes, s.invalidGrants} {
		m.counters = ratelimit.NewCounters(n)
	}
}
