package adminapi

import "time"

// Ban is a client, or a user of one, that is kept out until a time.
type Ban struct {
	ClientID string `json:"client_id"`
	// Username is that of the key; nil: the client itself, for client_credentials.
	Username *string `json:"username,omitempty"`
	// DryRun is set if the ban would be in force, and is not. The instance that answers alone has it.
	DryRun bool `json:"dry_run"`
	Active bool `json:"active"` // it is not over
	// NotEnforced is set if the policy in force keeps nobody out by it: its mode is another one, or the client is
	// trusted or has no ban any more.
	NotEnforced bool      `json:"not_enforced,omitempty"`
	Before      int       `json:"bans_before"`
	Since       time.Time `json:"since"`
	Until       time.Time `json:"until"`
	// Forgotten is from when on another ban is a first one.
	Forgotten time.Time `json:"forgotten_at"`
	Lifted    time.Time `json:"lifted_at,omitzero"` // by an operator
}

// Bans is a page of the bans.
type Bans struct {
	Bans []Ban  `json:"bans"`
	Next string `json:"next,omitempty"` // value of after for the next page
}
