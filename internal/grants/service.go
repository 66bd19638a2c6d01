package grants

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants/issuer"
	"oauth-server/internal/keys"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
)

// Clients looks clients up in memory. [clientcfg.Source] is one.
type Clients interface {
	// Client returns the client of that ID, which the caller must not change.
	Client(id string) (*clientcfg.Client, bool)
}

// Signer signs and verifies access tokens. [keys.Ring] is one.
type Signer interface {
	// Sign sets the issuer and returns the token.
	Sign(c keys.Claims) (string, error)
	// Verify returns an error for anything but a valid token of this server.
	Verify(token string, now time.Time) (keys.Claims, error)
}

// tokenIssuer makes tokens. [issuer.Issuer] is the one in use.
type tokenIssuer interface {
	// Issue makes the tokens, has req.Store store them, and returns them only if that succeeded.
	Issue(ctx context.Context, req issuer.Request) (access, refresh string, err error)
}

// Store is everything that a [Service] keeps.
type Store interface {
	Codes
	RefreshTokens
	Revocations
	Users
	Sessions
}

// Options configure a [Service]. Issuer, Clients, Store and Signer are required; every other zero
// value means the default that is named beside it.
type Options struct {
	Issuer    string // aud of access tokens if the client has none of its own
	Clients   Clients
	Store     Store
	Signer    Signer
	Passwords *secret.Passwords // secret.NewPasswords(secret.PasswordOptions{})

	Now    func() time.Time // time.Now; of what is issued and expires
	Logger *slog.Logger     // discards

	CodeLifetime         time.Duration // 2m
	AccessTokenLifetime  time.Duration // 1h; keys.Options.TokenLifetime must not be shorter
	RefreshTokenLifetime time.Duration // 30 days, counted anew for each successor
	SessionLifetime      time.Duration // 12h

	// Counters and Policies make the limiter; without both nothing is limited. Clock is the time of
	// all counts, Now if it is nil; see package clock.
	Clock    func() time.Time
	Counters *ratelimit.Counters
	Policies func() *clientcfg.PolicySnapshot // the current ones, without I/O
	// Observe is called with every decision of the limiter, before the answer is made, with the
	// context of the request. It must not block. Nil disables it.
	Observe func(context.Context, Decided)

	// SecretUsed is called with each use of a client's secret. It must not block. Nil disables it.
	SecretUsed func(clientID string, d secret.Digest, at time.Time)

	// ClientFailures limit failed client authentications: 300 a minute from an address, 60 with the
	// same client_id.
	ClientFailures FailureLimits
	// SignInFailures limit wrong passwords: 100 a minute from an address, 20 with the same
	// username. Over the limit no password is hashed.
	SignInFailures FailureLimits
}

func (o Options) withDefaults() Options {
	o.CodeLifetime = cmp.Or(o.CodeLifetime, 2*time.Minute)
	o.AccessTokenLifetime = cmp.Or(o.AccessTokenLifetime, time.Hour)
	o.RefreshTokenLifetime = cmp.Or(o.RefreshTokenLifetime, 30*24*time.Hour)
	o.SessionLifetime = cmp.Or(o.SessionLifetime, 12*time.Hour)
	defaultFailures(&o.ClientFailures, 300, 60)
	defaultFailures(&o.SignInFailures, 100, 20)
	if o.Passwords == nil {
		o.Passwords = secret.NewPasswords(secret.PasswordOptions{})
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Clock == nil {
		o.Clock = o.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func defaultFailures(l *FailureLimits, perAddress, perName int64) {
	if l.PerAddress == (ratelimit.Limit{}) {
		l.PerAddress = ratelimit.NewLimit("per-address", perAddress, time.Minute)
	}
	if l.PerName == (ratelimit.Limit{}) {
		l.PerName = ratelimit.NewLimit("per-name", perName, time.Minute)
	}
}

func (o Options) validate() error {
	var errs []error
	if o.Issuer == "" || o.Clients == nil || o.Store == nil || o.Signer == nil {
		errs = append(errs, errors.New("grants: issuer, clients, store and signer are needed"))
	}
	if min(o.CodeLifetime, o.AccessTokenLifetime, o.RefreshTokenLifetime, o.SessionLifetime) < time.Second {
		errs = append(errs, errors.New("grants: no lifetime may be shorter than a second"))
	}
	if (o.Counters == nil) != (o.Policies == nil) {
		errs = append(errs, errors.New("grants: counters and policies only work together"))
	}
	return errors.Join(errs...)
}

// Service is the OAuth protocol without HTTP. It is safe for concurrent use.
type Service struct {
	opts   Options
	store  Store
	issuer tokenIssuer

	clientFailures *failures
	signInFailures *failures
}

// New makes a Service. Its error joins everything that is wrong with the options.
func New(opts Options) (*Service, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	s := &Service{opts: opts, store: opts.Store, issuer: issuer.New(opts.Signer)}
	var err error
	if s.clientFailures, err = newFailures(opts.ClientFailures); err != nil {
		return nil, fmt.Errorf("grants: limits of failed client authentications: %w", err)
	}
	if s.signInFailures, err = newFailures(opts.SignInFailures); err != nil {
		return nil, fmt.Errorf("grants: limits of wrong passwords: %w", err)
	}
	return s, nil
}
