package adminapi

import "time"

// Ban is a client, or a user of a client, that is banned until a time.
type Ban struct {
	ClientID string `json:"client_id"`
	// user of the client that is banned; absent: the client itself, for client_credentials
	Username *string `json:"username,omitempty"`
	// The ban would be in force but is not enforced. Only the instance that answers has it.
	DryRun bool `json:"dry_run"`
	Active bool `json:"active"` // not expired
	// The current policy does not enforce the ban: its mode is not enforce, or the client is
	// trusted or no longer has a ban.
	NotEnforced bool      `json:"not_enforced,omitempty"`
	Before      int       `json:"bans_before"` // bans before it that were not forgotten
	Since       time.Time `json:"since"`
	Until       time.Time `json:"until"`
	Forgotten   time.Time `json:"forgotten_at"`       // from then on the next ban is a first one
	Lifted      time.Time `json:"lifted_at,omitzero"` // by an operator
}

// Bans is a page of the bans.
type Bans struct {
	Bans []Ban  `json:"bans"`
	Next string `json:"next,omitempty"` // value of after for the next page
}
