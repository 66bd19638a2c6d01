package adminapi

import "oauth-server/internal/limiter/preset"

// Presets is all presets.
type Presets struct {
	Presets []preset.Preset `json:"presets"`
}
