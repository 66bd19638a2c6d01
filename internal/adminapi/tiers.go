package adminapi

import (
	"time"

	"oauth-server/internal/ratelimit"
)

// Tier is a named policy that the policies of clients refer to. An absent field leaves the decision to the
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

// TierView is a tier with what is only for reading.
type TierView struct {
	Tier
	Clients int `json:"clients"` // how many have it
	Meta    struct {
		Version int64     `json:"version"`
		Until   time.Time `json:"until,omitzero"` // when it ends by itself; zero: it does not
	} `json:"meta"`
}

// Tiers is a page of the tiers.
type Tiers struct {
	Version int64      `json:"version"`            // of all policies: what the whole page shows
	LeftOut int        `json:"left_out,omitempty"` // targets that are not as in that version: see PoliciesInForce
	Tiers   []TierView `json:"tiers"`
	Next    string     `json:"next,omitempty"` // value of after for the next page
}

// Override is limits for one user of one client, in place of the client's list for its users.
type Override struct {
	ClientID string  `json:"client_id"`
	Username string  `json:"username"`
	User     []Limit `json:"user"`
	Note     string  `json:"note,omitempty"`
}

// OverrideView is an override with what is only for reading.
type OverrideView struct {
	Override
	Meta struct {
		Version int64     `json:"version"`
		Until   time.Time `json:"until,omitzero"` // as above
	} `json:"meta"`
}

// Overrides is a page of the overrides of one client.
type Overrides struct {
	ClientID  string         `json:"client_id"`
	Version   int64          `json:"version"` // as in Tiers
	LeftOut   int            `json:"left_out,omitempty"`
	Overrides []OverrideView `json:"overrides"`
	Next      string         `json:"next,omitempty"` // value of after for the next page
}
