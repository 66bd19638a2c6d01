package grants

import (
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

// Authorization is what the user agreed to. It is the same in the code and in the family that begins
// with it.
type Authorization struct {
	ClientID string
	Username string
	Scopes   []string
	// Family names all tokens that descend from one authorization, so that they can be revoked
	// together (RFC 9700 4.14.2).
	Family string
	// AuthTime is when the user signed in.
	AuthTime time.Time
	// UserStamp is that of the user at the sign-in.
	UserStamp secret.Stamp
}

// Code is an authorization code as stored: by its digest only.
type Code struct {
	Authorization
	Digest      secret.Digest
	RedirectURI string
	Challenge   string // S256; empty if the client is exempt from PKCE
	IssuedAt    time.Time
	ExpiresAt   time.Time // of the record; the code can be redeemed for [Options].CodeLifetime at most
	Claimed     bool
	ClientStamp secret.Stamp // that of the client when the code was issued
	seen        store.Seen   // the state in which it was read
}

// Family is a sign-in that can be refreshed, as stored: one record, however often it is refreshed.
type Family struct {
	Authorization
	Digest     secret.Digest // of the secret in its refresh tokens
	Generation uint32        // of its newest refresh token; that of the first is 1
	IssuedAt   time.Time     // of the newest refresh token
	ExpiresAt  time.Time     // of the newest refresh token
	// ClientStamp is that of the client when the newest refresh token was issued.
	ClientStamp secret.Stamp
	stored      storedFamily
}

// storedFamily is the state in which a family was read. The zero value is that of a new one.
type storedFamily struct {
	seen    store.Seen
	claimed bool      // it began with a code, which is in the same record
	kept    time.Time // how long the record is stored
}

// Agreement is what a user allows a client: a remembered consent, as stored.
type Agreement struct {
	Username string
	ClientID string
	ID       string // random; the names of the families that come of it begin with it
	Scopes   []string
	AgreedAt time.Time // when the user last agreed on a page
	UsedAt   time.Time // when a code was last issued under it, to the day
	// ExpiresAt is when it is forgotten unless it is used.
	ExpiresAt time.Time
	// ClientStamp and UserStamp are those of the client and the user when the user agreed.
	ClientStamp secret.Stamp
	UserStamp   secret.Stamp
	seen        store.Seen // the state in which it was read
}

// User is a person who can sign in.
type User struct {
	Name         string
	PasswordHash string // argon2id in PHC string format
	CreatedAt    time.Time
	Stamp        secret.Stamp
	Operator     clientcfg.Access
}

// StoredUser is what a store has under the name of a user.
type StoredUser struct {
	User
	// Err is why the user cannot be read; then User has nothing but the name. It wraps ErrUnreadableUser.
	Err error
}

// Session is a person signed in with a browser.
type Session struct {
	Key       string // of the digest of the cookie's value
	Username  string
	CreatedAt time.Time
	ExpiresAt time.Time
	UserStamp secret.Stamp // that of the user whose password was checked
}
