package adminapi

import (
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/registry"
)

// Registration is a client with what is only for reading.
type Registration struct {
	clientcfg.Metadata
	IssuedAt int64             `json:"client_id_issued_at"` // seconds since 1970 (RFC 7591 3.2.1)
	Secrets  []registry.Secret `json:"secrets"`
	// LockedOut is why limits in force lock the client out of this API; empty: none does, or it is no client of
	// operators.
	LockedOut string `json:"locked_out,omitempty"`
	Meta      struct {
		Version int64 `json:"version"`
	} `json:"meta"`
}

// ShowRegistration returns a client as the API shows it: nothing secret.
func ShowRegistration(c *clientcfg.Client, now time.Time) Registration {
	r := Registration{
		Metadata: c.Metadata(), IssuedAt: c.CreatedAt.Unix(), Secrets: registry.Secrets(c, now),
	}
	r.Meta.Version = c.Version
	return r
}

// Registered is the answer to a new client or a new secret: the only one that has the secret.
type Registered struct {
	Registration
	Secret string `json:"client_secret,omitempty"`
	// SecretExpiresAt is always 0, for never (RFC 7591 3.2.1); it is there with a secret.
	SecretExpiresAt *int64 `json:"client_secret_expires_at,omitempty"`
}

// Secrets are those of a client that are valid, the newest first.
type Secrets struct {
	ClientID string            `json:"client_id"`
	Secrets  []registry.Secret `json:"secrets"`
}

// Users is a page of the users.
type Users struct {
	Users []registry.User `json:"users"`
	Next  string          `json:"next,omitempty"` // value of after for the next page
}

// Sessions are the browsers that a user is signed in with.
type Sessions struct {
	Username string             `json:"username"`
	Sessions []registry.Session `json:"sessions"`
}

// Families are the sign-ins of a user that can be refreshed.
type Families struct {
	Username string            `json:"username"`
	Families []registry.Family `json:"families"`
}

// Consents is what a user allows clients.
type Consents struct {
	Username string             `json:"username"`
	Consents []registry.Consent `json:"consents"`
}

// Ended is how many sessions or families were ended.
type Ended struct {
	Username string `json:"username"`
	Ended    int    `json:"ended"`
}
