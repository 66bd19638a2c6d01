package adminapi

import (
	"time"

	"oauth-server/internal/admin/registry"
	"oauth-server/internal/clientcfg"
)

// Registration is a client with its read-only fields.
type Registration struct {
	clientcfg.Metadata
	// seconds since 1970 (RFC 7591 3.2.1); 0: a client of the server behind a gateway
	IssuedAt int64             `json:"client_id_issued_at" schema:"readonly"`
	Secrets  []registry.Secret `json:"secrets,omitzero" schema:"readonly"` // in lists only for a caller with registrations:read
	// Why limits in force lock the client out of this API: trust it, or give it its own limits.
	// Absent if they do not.
	LockedOut string `json:"locked_out,omitempty" schema:"readonly"`
	Meta      struct {
		Version int64 `json:"version"`
	} `json:"meta" schema:"readonly"`
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
	Secret string `json:"client_secret,omitempty"` // in this response only
	// with a secret always 0: never (RFC 7591 3.2.1)
	SecretExpiresAt *int64 `json:"client_secret_expires_at,omitempty"`
}

// NewClient is a client to be registered. The defaults are those of RFC 7591, and for the grants
// authorization_code and refresh_token with a redirect URI, client_credentials otherwise.
type NewClient struct {
	clientcfg.Metadata
	// SecretHash is the SHA-256 of a secret of at least 128 bits that exists already, hexadecimal or
	// base64. Absent: a secret is made.
	SecretHash string `json:"client_secret_hash,omitempty"`
}

// NewPassword is a user's new password.
type NewPassword struct {
	Password string `json:"password" schema:"required"`
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

// Ended is the number of sessions or families that were ended.
type Ended struct {
	Username string `json:"username"`
	Ended    int    `json:"ended"`
}
