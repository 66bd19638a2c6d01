package grants

import (
	"cmp"
	"errors"
	"log/slog"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/keys"
	"oauth-server/internal/secret"
)

// Clients looks clients up in memory. [clientcfg.Source] is one.
type Clients interface {
	// Client returns the client of that ID; it must not be changed.
	Client(id string) (*clientcfg.Client, bool)
}

// Signer signs and verifies access tokens. [keys.Ring] is one.
type Signer interface {
	// Sign sets the issuer and returns the token.
	Sign(c keys.Claims) (string, error)
	// Verify returns an error for anything but a good token of ours.
	Verify(token string, now time.Time) (keys.Claims, error)
}

// Store is everything that a [Service] keeps.
type Store interface {
	Codes
	RefreshTokens
	Revocations
	Users
	Sessions
}

// Options make a [Service]. Issuer, Clients, Store and Signer are required;
// every other zero value means the default that is named beside it.
type Options struct {
	Issuer    string // aud of access tokens if the client has none of its own
	Clients   Clients
	Store     Store
	Signer    Signer
	Passwords *secret.Passwords // secret.NewPasswords(secret.PasswordOptions{})

	Now    func() time.Time // time.Now
	Logger *slog.Logger     // discards

	CodeLifetime         time.Duration // 2m
	AccessTokenLifetime  time.Duration // 1h; keys.Options.TokenLifetime must not be shorter
	RefreshTokenLifetime time.Duration // 30 days, counted anew for each successor
	SessionLifetime      time.Duration // 12h
}

func (o Options) withDefaults() Options {
	o.CodeLifetime = cmp.Or(o.CodeLifetime, 2*time.Minute)
	o.AccessTokenLifetime = cmp.Or(o.AccessTokenLifetime, time.Hour)
	o.RefreshTokenLifetime = cmp.Or(o.RefreshTokenLifetime, 30*24*time.Hour)
	o.SessionLifetime = cmp.Or(o.SessionLifetime, 12*time.Hour)
	if o.Passwords == nil {
		o.Passwords = secret.NewPasswords(secret.PasswordOptions{})
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o Options) validate() error {
	var errs []error
	if o.Issuer == "" || o.Clients == nil || o.Store == nil || o.Signer == nil {
		errs = append(errs, errors.New("grants: issuer, clients, store and signer are needed"))
	}
	if min(o.CodeLifetime, o.AccessTokenLifetime, o.RefreshTokenLifetime, o.SessionLifetime) < time.Second {
		errs = append(errs, errors.New("grants: no lifetime may be shorter than a second"))
	}
	return errors.Join(errs...)
}

// Service is the OAuth protocol without HTTP. It is safe for concurrent use.
type Service struct {
	opts    Options
	store   Store
	library *library
}

// New makes a Service; it reports everything that is wrong with the options.
func New(opts Options) (*Service, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	s := &Service{opts: opts, store: opts.Store}
	s.library = newLibrary(s)
	return s, nil
}
