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
	"oauth-server/internal/limiter"
	"oauth-server/internal/limiter/recent"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
)

// Clients looks up clients in memory. [clientcfg.Source] implements it.
type Clients interface {
	// Client returns the client with that ID. The caller must not change it.
	Client(id string) (*clientcfg.Client, bool)
	// Renew makes sure that the clients in memory were current at most atMost ago.
	Renew(ctx context.Context, atMost time.Duration) error
}

// Signer signs and verifies access tokens. [keys.Ring] implements it.
type Signer interface {
	// Sign sets the issuer and returns the token.
	Sign(c keys.Claims) (string, error)
	// Verify returns an error for anything but a valid token of this server.
	Verify(token string, now time.Time) (keys.Claims, error)
	// Published reports whether the key that signed the token is still published. The token must
	// come from Sign.
	Published(token string) bool
}

// Deriver derives secrets with a key that all instances share. [keys.MAC] implements it.
type Deriver interface {
	// Derive returns 256 bits as 43 characters of base64url. They cannot be computed without the
	// key.
	Derive(purpose, secret string) string
}

// tokenIssuer makes tokens. [issuer.Issuer] implements it.
type tokenIssuer interface {
	// Issue makes the tokens, stores them with req.Store, and returns them only if that succeeded.
	Issue(ctx context.Context, req issuer.Request) (access, refresh string, err error)
}

// Store is the storage that a [Service] needs.
type Store interface {
	Codes
	Families
	Agreements
	Revocations
	clientcfg.ClientReader
	Users
	KnownAddresses
	Sessions
}

// Options configure a [Service]. Issuer, Clients, Store, Signer and Deriver are required. Any other
// zero value means the default noted beside the field.
type Options struct {
	Issuer    string // aud of access tokens if the client has no audience of its own
	Clients   Clients
	Store     Store
	Signer    Signer
	Passwords *secret.Passwords // secret.NewPasswords(secret.PasswordOptions{})

	Now    func() time.Time // time.Now; for issue and expiry times
	Logger *slog.Logger     // discards
	// LogUser returns the log attribute for a user. If it is nil, logs do not mention users.
	LogUser func(username string) slog.Attr

	CodeLifetime         time.Duration // 2m
	AccessTokenLifetime  time.Duration // 1h; keys.Options.TokenLifetime must not be shorter
	RefreshTokenLifetime time.Duration // 30 days, counted anew from each refresh
	RefreshMaxAge        time.Duration // 90 days after sign-in, when every refresh token ends
	SessionLifetime      time.Duration // 12h
	SessionsPerUser      int           // 20; one more ends the oldest
	// CodesPerSession is how many codes a session gets within CodeLifetime. The default is 120. A
	// session may answer ten times as many consent pages, counting repeated answers.
	CodesPerSession int64

	// RefreshGrace is how long a used refresh token still returns the same successor, as long as
	// the successor is unused. 0 means never.
	RefreshGrace time.Duration
	// Deriver authenticates codes and refresh tokens. It also hides the usernames and addresses
	// that are stored after wrong passwords.
	Deriver Deriver

	// Counters and Policies make up the limiter. Without both, nothing is limited. Clock is the
	// time of all counts and defaults to Now; see package clock.
	Clock    func() time.Time
	Counters *ratelimit.Counters
	Policies func() *clientcfg.PolicySnapshot // returns the current policies, without I/O
	Bans     limiter.Bans                     // nil means no bans, whatever the policies say
	// Observe is called with every decision of the limiter and the context of the request, before
	// the response is made. It must not block. Nil disables it.
	Observe func(context.Context, limiter.Decided)

	// Shedder sheds requests while the server is overloaded. Nil disables load shedding.
	Shedder Shedder

	// Issued is called with every newly issued access token, but not with a token that is handed
	// out again. It must not block. Nil disables it.
	Issued func(Issued)

	// SecretUsed is called with each use of a client's secret. It must not block. Nil disables it.
	SecretUsed func(clientID string, d secret.Digest, at time.Time)

	// ClientFailures limits failed client authentications. The defaults are 300 a minute from an
	// address, and 60 of them with the same client_id.
	ClientFailures FailureLimits
	// SignInFailures limits wrong passwords. The defaults are 100 a minute from an address, and 20
	// of them with the same username. Over the limit no password is hashed.
	SignInFailures FailureLimits
	// InvalidGrants limits invalid codes and refresh tokens. The defaults are 6000 a minute from an
	// address, and 3000 of them with the same client_id. They are this high because all users of a
	// web application may share one address and lose their tokens at once. Over the limit nothing
	// is looked up.
	InvalidGrants FailureLimits
	// Introspections and Revocations limit the requests of one client to those endpoints. The
	// defaults are 600 and 100 a second, over ten seconds.
	Introspections, Revocations ratelimit.Limit
	// SignIns limits correct passwords for one username from one address. The default is 120 a
	// minute. Over the limit no password is hashed either.
	SignIns ratelimit.Limit
	// Guesses limits wrong passwords over a day. The defaults are 200 for one username from one
	// address, and 100 in a row for one username. After that, one attempt every 30 seconds is
	// allowed.
	Guesses GuessLimits
}

func (o Options) withDefaults() Options {
	o.CodeLifetime = cmp.Or(o.CodeLifetime, 2*time.Minute)
	o.AccessTokenLifetime = cmp.Or(o.AccessTokenLifetime, time.Hour)
	o.RefreshTokenLifetime = cmp.Or(o.RefreshTokenLifetime, 30*24*time.Hour)
	o.RefreshMaxAge = cmp.Or(o.RefreshMaxAge, 90*24*time.Hour)
	o.SessionLifetime = cmp.Or(o.SessionLifetime, 12*time.Hour)
	o.SessionsPerUser = cmp.Or(o.SessionsPerUser, 20)
	o.CodesPerSession = cmp.Or(o.CodesPerSession, 120)
	defaultFailures(&o.ClientFailures, 300, 60)
	defaultFailures(&o.SignInFailures, 100, 20)
	defaultFailures(&o.InvalidGrants, 6000, 3000)
	defaultQueries(&o.Introspections, 600)
	defaultQueries(&o.Revocations, 100)
	if o.SignIns == (ratelimit.Limit{}) {
		o.SignIns = ratelimit.NewLimit("sign-ins", 120, time.Minute)
	}
	if o.Guesses == (GuessLimits{}) {
		o.Guesses = NewGuessLimits(200, 100, 30*time.Second)
	}
	if o.Passwords == nil {
		o.Passwords = secret.NewPasswords(secret.PasswordOptions{})
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Clock == nil {
		o.Clock = o.Now
	}
	if o.Shedder == nil {
		o.Shedder = open{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.LogUser == nil {
		o.LogUser = func(string) slog.Attr { return slog.Attr{} }
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

func defaultQueries(l *ratelimit.Limit, perSecond int64) {
	if *l == (ratelimit.Limit{}) {
		*l = QueryLimit(perSecond)
	}
}

// QueryLimit returns a limit of perSecond requests a second, counted over ten seconds because
// callers send bursts.
func QueryLimit(perSecond int64) ratelimit.Limit {
	return ratelimit.NewLimit("per-client", 10*perSecond, 10*time.Second)
}

func (o Options) validate() error {
	var errs []error
	if o.Issuer == "" || o.Clients == nil || o.Store == nil || o.Signer == nil || o.Deriver == nil {
		errs = append(errs, errors.New("grants: issuer, clients, store, signer and deriver are needed"))
	}
	if min(o.CodeLifetime, o.AccessTokenLifetime, o.RefreshTokenLifetime, o.RefreshMaxAge, o.SessionLifetime) < time.Second {
		errs = append(errs, errors.New("grants: no lifetime may be shorter than a second"))
	}
	if o.RefreshGrace < 0 {
		errs = append(errs, errors.New("grants: a grace period for refresh tokens must not be negative"))
	}
	if o.SessionsPerUser < 1 {
		errs = append(errs, errors.New("grants: a user needs at least one session"))
	}
	if (o.Counters == nil) != (o.Policies == nil) {
		errs = append(errs, errors.New("grants: counters and policies only work together"))
	}
	return errors.Join(errs...)
}

// Service implements the OAuth protocol without HTTP. It is safe for concurrent use.
type Service struct {
	opts   Options
	store  Store
	issuer tokenIssuer

	clientFailures failures
	signIns        signIns
	guesses        *guesses

	invalidGrants               *meter
	introspections, revocations *meter
	replayLines                 *meter // one log line a minute for each family
	consents                    *meter // per session

	limiter *limiter.Limiter // nil: nothing is limited
	last    *reuseTables
	recent  *recentTokens
}

// New makes a Service. Its error joins all problems with the options.
func New(opts Options) (*Service, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	s := &Service{opts: opts, store: opts.Store, issuer: issuer.New(opts.Signer), last: newReuseTables(opts.Now()), recent: newRecentTokens(opts.Now())}
	if opts.Counters != nil {
		s.limiter = limiter.New(limiter.Options{
			Counters: opts.Counters, Policies: func() limiter.Policies { return opts.Policies() }, Clock: opts.Clock, Bans: opts.Bans, Observe: opts.Observe,
		})
	}
	proven := recent.New(opts.Clock(), recent.DefaultSlots)
	var err error
	if s.clientFailures, err = newFailures(proven, opts.ClientFailures); err != nil {
		return nil, fmt.Errorf("grants: limits of failed client authentications: %w", err)
	}
	if s.signIns, err = newSignIns(proven, opts.SignInFailures, opts.SignIns); err != nil {
		return nil, fmt.Errorf("grants: limits of %w", err)
	}
	if s.guesses, err = newGuesses(&opts); err != nil {
		return nil, fmt.Errorf("grants: limits of guesses: %w", err)
	}
	if err := s.addMeters(proven); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Service) addMeters(proven *recent.Table) (err error) {
	o := &s.opts
	if s.invalidGrants, err = newMeter(proven, o.InvalidGrants.PerName, o.InvalidGrants.PerAddress); err != nil {
		return fmt.Errorf("grants: limits of invalid codes and refresh tokens: %w", err)
	}
	if s.introspections, err = newMeter(proven, o.Introspections, o.Introspections); err != nil {
		return fmt.Errorf("grants: limit of introspections: %w", err)
	}
	if s.revocations, err = newMeter(proven, o.Revocations, o.Revocations); err != nil {
		return fmt.Errorf("grants: limit of revocations: %w", err)
	}
	codes := ratelimit.NewLimit("codes-per-session", o.CodesPerSession, o.CodeLifetime)
	answers := ratelimit.NewLimit("answers-per-session", min(answersPerCode*o.CodesPerSession, ratelimit.MaxRequests), o.CodeLifetime)
	if s.consents, err = newMeter(proven, answers, codes); err != nil {
		return fmt.Errorf("grants: limit of codes: %w", err)
	}
	line := ratelimit.NewLimit("lines", 1, time.Minute)
	line.Frames = ratelimit.MaxFrames // with one frame, the start of the next frame would already allow another line
	s.replayLines, err = newMeter(proven, line, line)
	return err
}
