package adminapi

import (
	"time"

	"oauth-server/internal/ratelimit"
)

// Tier is a named policy that clients' policies refer to. An absent field takes the value of the
// settings.
type Tier struct {
	Name      string  `json:"name"`
	Mode      string  `json:"mode,omitempty"`
	User      []Limit `json:"user,omitempty"`
	Client    []Limit `json:"client,omitempty"`
	Total     []Limit `json:"total,omitempty"`
	Source    []Limit `json:"source,omitempty"`
	OverLimit string  `json:"over_limit,omitempty"`
	Waits
	Ban         *ratelimit.Ban `json:"ban,omitempty"`
	Criticality string         `json:"criticality,omitempty"`
	HideHeaders bool           `json:"hide_headers"`
	Note        string         `json:"note,omitempty"`
}

// TierView is a tier with its read-only fields.
type TierView struct {
	Tier
	Clients int `json:"clients"` // number of clients with this tier
	Meta    struct {
		Version int64     `json:"version"`
		Until   time.Time `json:"until,omitzero"` // end if temporary; zero: permanent
	} `json:"meta"`
}

// Tiers is a page of the tiers.
type Tiers struct {
	Version int64      `json:"version"`            // of all policies; the whole page shows this version
	LeftOut int        `json:"left_out,omitempty"` // targets that differ from that version: see PoliciesInForce
	Tiers   []TierView `json:"tiers"`
	Next    string     `json:"next,omitempty"` // value of after for the next page
}

// Override is the limits of one user of one client. They replace the client's list for its users.
type Override struct {
	ClientID string  `json:"client_id"`
	Username string  `json:"username"`
	User     []Limit `json:"user"`
	Note     string  `json:"note,omitempty"`
}

// OverrideView is an override with its read-only fields.
type OverrideView struct {
	Override
	Meta struct {
		Version int64     `json:"version"`
		Until   time.Time `json:"until,omitzero"` // end if temporary; zero: permanent
	} `json:"meta"`
}

// Overrides is a page of the overrides of one client.
type Overrides struct {
	ClientID  string         `json:"client_id"`
	Version   int64          `json:"version"` // see Tiers
	LeftOut   int            `json:"left_out,omitempty"`
	Overrides []OverrideView `json:"overrides"`
	Next      string         `json:"next,omitempty"` // value of after for the next page
}
