package adminapi

import "oauth-server/internal/ratelimit"

// Preset is a named set of limits that a provider publishes. A list is absent if the provider's
// page has no limit that this server can count.
type Preset struct {
	Name   string            `json:"name"`
	User   []ratelimit.Limit `json:"user,omitempty"` // absent: the page has no such limit that can be counted
	Client []ratelimit.Limit `json:"client,omitempty"`
	Total  []ratelimit.Limit `json:"total,omitempty"` // over all users of a client
	About  string            `json:"about"`           // what the provider limits, for people
	Page   string            `json:"page"`            // URL of the provider's page with the limits
}

// Presets is all presets.
type Presets struct {
	Presets []Preset `json:"presets"`
}
