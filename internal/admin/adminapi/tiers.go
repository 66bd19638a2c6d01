package adminapi

import "oauth-server/internal/ratelimit"

// Tier is a named policy that clients' policies refer to. An absent field takes the value of the
// settings.
type Tier struct {
	Name string `json:"name" schema:"maxLength=64"` // visible ASCII characters
	// absent: the mode of the settings, with their canary share
	Mode *ratelimit.Mode `json:"mode,omitempty" schema:"enum=enforce|dry_run|off"`
	Lists
	HideHeaders bool `json:"hide_headers"`
	// for people: at most 500 bytes of printable characters
	Note    string `json:"note,omitempty" schema:"maxLength=500"`
	Clients *int   `json:"clients,omitempty" schema:"readonly"` // number of clients with this tier
	Meta    Meta   `json:"meta,omitzero" schema:"readonly"`
}

// Listed is what pages of targets have in common.
type Listed struct {
	Version int64 `json:"version"` // of all policies; the whole page shows this version
	// targets that differ from that version, because the instance cannot use their values
	LeftOut int    `json:"left_out,omitempty"`
	Next    string `json:"next,omitempty"` // value of after for the next page
}

// Tiers is a page of the tiers.
type Tiers struct {
	Listed
	Tiers []Tier `json:"tiers"`
}

// Override is the limits of one user of one client. They replace the client's list for its users.
type Override struct {
	ClientID string            `json:"client_id"`
	Username string            `json:"username"` // in the form in which its requests are counted
	User     []ratelimit.Limit `json:"user"`     // in place of the limits that the client has for its users
	// for people: at most 500 bytes of printable characters
	Note string `json:"note,omitempty" schema:"maxLength=500"`
	Meta Meta   `json:"meta,omitzero" schema:"readonly"`
}

// Overrides is a page of the overrides of one client.
type Overrides struct {
	Listed
	ClientID  string     `json:"client_id"`
	Overrides []Override `json:"overrides"`
}
