package adminapi

// Preset is limits that a provider publishes, by a name. A list is absent if its page has no limit
// that can be counted so.
type Preset struct {
	Name   string  `json:"name"`
	User   []Limit `json:"user,omitempty"`
	Client []Limit `json:"client,omitempty"`
	Total  []Limit `json:"total,omitempty"`
	About  string  `json:"about"` // what is limited, for people
	Page   string  `json:"page"`  // URL of where the provider says so
}

// Presets is all of them.
type Presets struct {
	Presets []Preset `json:"presets"`
}
