package admin

import (
	"oauth-server/internal/adminapi"
	"oauth-server/internal/limiter/preset"
)

// listPresets returns the named limits of this release.
func (s *Server) listPresets(c *call) error {
	out := adminapi.Presets{Presets: []adminapi.Preset{}}
	for _, p := range preset.All() {
		out.Presets = append(out.Presets, adminapi.Preset{
			Name: p.Name, User: adminapi.ShowLimits(p.User), Client: adminapi.ShowLimits(p.Client), Total: adminapi.ShowLimits(p.Total),
			About: p.About, Page: p.Page,
		})
	}
	return c.answer(out)
}
