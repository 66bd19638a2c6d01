package adminapi

import "time"

// Consents is what a user allows clients.
type Consents struct {
	Username string    `json:"username"`
	Consents []Consent `json:"consents"`
}

// Consent is what a user allows one client.
type Consent struct {
	ClientID  string    `json:"client_id"`
	Scopes    []string  `json:"scopes"`
	AgreedAt  time.Time `json:"agreed_at"`  // on a page
	UsedAt    time.Time `json:"used_at"`    // to the day
	ExpiresAt time.Time `json:"expires_at"` // unless it is used before
}
