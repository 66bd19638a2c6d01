package keys

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// Claims are what an access token says (RFC 9068 2.2).
type Claims struct {
	Issuer    string
	Subject   string
	Audience  []string
	ClientID  string
	Scopes    []string
	IssuedAt  time.Time // whole seconds survive
	ExpiresAt time.Time
	AuthTime  time.Time // when the user signed in; zero if nobody did
	ID        string    // jti
	Family    string    // private claim "fam": the authorization it descends from; empty without a user
}

// ErrInvalidToken is what Verify returns, wrapped, for anything but a good token.
var ErrInvalidToken = errors.New("keys: invalid token")

// Options make a [Ring]. Issuer is required; every other zero value means the
// default that is named beside it.
type Options struct {
	Issuer        string
	Algorithm     Algorithm        // ES256
	TokenLifetime time.Duration    // 1h: the longest that a signed token lives
	RotateEvery   time.Duration    // 90 days: how long a key signs
	PublishAhead  time.Duration    // 24h: how long a key is published before it signs
	CheckEvery    time.Duration    // 1m: how often Run looks at the store
	Now           func() time.Time // time.Now
	Logger        *slog.Logger     // discards
}

// Ring holds all published keys and signs with the active one.
type Ring struct{}

// Open loads the keys, makes the first one if there is none, and returns.
func Open(ctx context.Context, store Store, opts Options) (*Ring, error) {
	return nil, errors.New("keys: not finished")
}

// Run rotates until ctx ends; it then returns nil.
func (r *Ring) Run(ctx context.Context) error { return nil }

// Sign returns the signed token with the key that is active at c.IssuedAt.
func (r *Ring) Sign(c Claims) (string, error) { return "", errors.New("keys: not finished") }

// Verify checks signature, type, issuer and expiry of one of our own tokens.
func (r *Ring) Verify(token string, now time.Time) (Claims, error) { return Claims{}, ErrInvalidToken }

// JWKS is the published key set (RFC 7517 5), ready to be sent. It must not be
// changed.
func (r *Ring) JWKS() []byte { return nil }
