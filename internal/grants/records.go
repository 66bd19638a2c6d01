package grants

import (
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

// Authorization is what the user agreed to. A code and its family share the same Authorization.
type Authorization struct {
	ClientID string
	Username string
	Scopes   []string
	// Family identifies all tokens that descend from one authorization, for revoking them together
	// (RFC 9700 4.14.2).
	Family string
	// AuthTime is when the user signed in.
	AuthTime time.Time
	// UserStamp is the user's stamp at sign-in.
	UserStamp secret.Stamp
}

// Code is an authorization code as stored. The store has only its digest.
type Code struct {
	Authorization
	Digest      secret.Digest
	RedirectURI string
	Challenge   string // S256; empty if the client is exempt from PKCE
	IssuedAt    time.Time
	ExpiresAt   time.Time // of the record; [Options].CodeLifetime may end the code itself earlier
	Claimed     bool
	ClientStamp secret.Stamp // the client's stamp when the code was issued
	seen        store.Seen   // the state of the record when it was read
}

// Family is a refreshable sign-in as stored. It stays one record, however often it is refreshed.
type Family struct {
	Authorization
	Digest     secret.Digest // of the secret in its refresh tokens
	Generation uint32        // of its newest refresh token; the first token has 1
	IssuedAt   time.Time     // of the newest refresh token
	ExpiresAt  time.Time     // of the newest refresh token
	// ClientStamp is the client's stamp when the newest refresh token was issued.
	ClientStamp secret.Stamp
	stored      storedFamily
}

// storedFamily is the state of a family's record when it was read. The zero value is a new family.
type storedFamily struct {
	seen    store.Seen
	claimed bool      // the family began with a code, which is in the same record
	kept    time.Time // how long the record is stored
}

// Agreement is a user's remembered consent to a client, as stored.
type Agreement struct {
	Username string
	ClientID string
	ID       string // random; prefix of the names of all families issued under this agreement
	Scopes   []string
	AgreedAt time.Time // when the user last agreed on a page
	UsedAt   time.Time // when a code was last issued under it, accurate to a day
	// ExpiresAt is when the agreement is forgotten. Each use moves it.
	ExpiresAt time.Time
	// ClientStamp and UserStamp are the stamps of the client and the user when the user agreed.
	ClientStamp secret.Stamp
	UserStamp   secret.Stamp
	seen        store.Seen // the state of the record when it was read
}

// User is a person who can sign in.
type User struct {
	Name         string
	PasswordHash string // argon2id in PHC string format
	CreatedAt    time.Time
	Stamp        secret.Stamp
	Operator     clientcfg.Access
}

// StoredUser is the user that a store has under a name, readable or not.
type StoredUser struct {
	User
	// Err says why the record cannot be read. User then has only its Name. Err wraps
	// ErrUnreadableUser.
	Err error
}

// Session is a person signed in with a browser.
type Session struct {
	Key       string // store key of the digest of the cookie's value
	Username  string
	CreatedAt time.Time
	ExpiresAt time.Time
	UserStamp secret.Stamp // stamp of the user when the password was checked
}
