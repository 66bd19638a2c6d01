package adminapi

import (
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/registry"
)

// Registration is a client with its read-only fields.
type Registration struct {
	clientcfg.Metadata
	IssuedAt int64             `json:"client_id_issued_at"` // seconds since 1970 (RFC 7591 3.2.1)
	Secrets  []registry.Secret `json:"secrets,omitzero"`
	// LockedOut is the reason why limits in force lock the client out of this API; empty if they do
	// not, or if it is not an operators' client.
	LockedOut string `json:"locked_out,omitempty"`
	Meta      struct {
		Version int64 `json:"version"`
	} `json:"meta"`
}

// ShowRegistration returns a client as the API shows it, without secrets.
func ShowRegistration(c *clientcfg.Client, now time.Time) Registration {
	r := Registration{Metadata: c.Metadata(), Secrets: registry.Secrets(c, now)}
	if !c.CreatedAt.IsZero() {
		r.IssuedAt = c.CreatedAt.Unix()
	}
	r.Meta.Version = c.Version
	return r
}

// Registered is the answer to creating a client or a secret. No other answer contains the secret.
type Registered struct {
	Registration
	Secret string `json:"client_secret,omitempty"`
	// SecretExpiresAt is always 0, for never (RFC 7591 3.2.1). It is present together with a
	// secret.
	SecretExpiresAt *int64 `json:"client_secret_expires_at,omitempty"`
}

// Secrets are the valid secrets of a client, newest first.
type Secrets struct {
	ClientID string            `json:"client_id"`
	Secrets  []registry.Secret `json:"secrets"`
}

// Users is a page of the users.
type Users struct {
	Users []registry.User `json:"users"`
	Next  string          `json:"next,omitempty"` // value of after for the next page
}

// Sessions are a user's signed-in browsers.
type Sessions struct {
	Username string             `json:"username"`
	Sessions []registry.Session `json:"sessions"`
}

// Families are a user's sign-ins that can be refreshed.
type Families struct {
	Username string            `json:"username"`
	Families []registry.Family `json:"families"`
}

// Consents are a user's consents to clients.
type Consents struct {
	Username string             `json:"username"`
	Consents []registry.Consent `json:"consents"`
}

// Ended is the number of sessions or families that were ended.
type Ended struct {
	Username string `json:"username"`
	Ended    int    `json:"ended"`
}
