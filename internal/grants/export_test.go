package grants

import "time"

// SetRefreshTokenLifetime changes the setting of a running service.
func (s *Service) SetRefreshTokenLifetime(d time.Duration) { s.opts.RefreshTokenLifetime = d }
