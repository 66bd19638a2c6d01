package adminapi

import (
	"time"

	"oauth-server/internal/ratelimit"
)

// Tier is a named policy that clients' policies refer to. An absent field takes the value of the
// settings.
type Tier struct {
	Name string `json:"name" schema:"maxLength=64"` // visible ASCII characters
	// absent: the mode of the settings, with their canary share
	Mode *ratelimit.Mode `json:"mode,omitempty" schema:"enum=enforce|dry_run|off"`
	Lists
	HideHeaders bool `json:"hide_headers"`
	// for people: at most 500 bytes of printable characters
	Note string `json:"note,omitempty" schema:"maxLength=500"`
}

// TierView is a tier with its read-only fields.
type TierView struct {
	Tier
	Clients int `json:"clients" schema:"readonly"` // number of clients with this tier
	Meta    struct {
		Version int64     `json:"version"`
		Until   time.Time `json:"until,omitzero"` // end of a temporary value; absent: permanent
	} `json:"meta"`
}

// Tiers is a page of the tiers.
type Tiers struct {
	Version int64 `json:"version"` // of all policies; the whole page shows this version
	// targets that differ from that version, because the instance cannot use their values
	LeftOut int        `json:"left_out,omitempty"`
	Tiers   []TierView `json:"tiers"`
	Next    string     `json:"next,omitempty"` // value of after for the next page
}

// Override is the limits of one user of one client. They replace the client's list for its users.
type Override struct {
	ClientID string            `json:"client_id"`
	Username string            `json:"username"` // in the form in which its requests are counted
	User     []ratelimit.Limit `json:"user"`     // in place of the limits that the client has for its users
	// for people: at most 500 bytes of printable characters
	Note string `json:"note,omitempty" schema:"maxLength=500"`
}

// OverrideView is an override with its read-only fields.
type OverrideView struct {
	Override
	Meta struct {
		Version int64     `json:"version"`
		Until   time.Time `json:"until,omitzero"` // end of a temporary value; absent: permanent
	} `json:"meta"`
}

// Overrides is a page of the overrides of one client.
type Overrides struct {
	ClientID  string         `json:"client_id"`
	Version   int64          `json:"version"`            // of all policies; the whole page shows this version
	LeftOut   int            `json:"left_out,omitempty"` // targets that differ from that version
	Overrides []OverrideView `json:"overrides"`
	Next      string         `json:"next,omitempty"` // value of after for the next page
}
