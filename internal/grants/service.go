package grants

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"oauth-server/internal/bans"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants/issuer"
	"oauth-server/internal/judgement"
	"oauth-server/internal/keys"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/recent"
	"oauth-server/internal/secret"
)

// Clients looks clients up in memory. [clientcfg.Source] is one.
type Clients interface {
	// Client returns the client of that ID, which the caller must not change.
	Client(id string) (*clientcfg.Client, bool)
	// Renew makes sure that what Client returns was the newest at most so long ago.
	Renew(ctx context.Context, atMost time.Duration) error
}

// Signer signs and verifies access tokens. [keys.Ring] is one.
type Signer interface {
	// Sign sets the issuer and returns the token.
	Sign(c keys.Claims) (string, error)
	// Verify returns an error for anything but a valid token of this server.
	Verify(token string, now time.Time) (keys.Claims, error)
	// Published reports whether the key that a token of Sign was signed with is still published.
	Published(token string) bool
}

// Deriver derives secrets with a key that all instances share. [keys.MAC] is one.
type Deriver interface {
	// Derive returns 256 bits as 43 characters of base64url, which cannot be computed without the key.
	Derive(purpose, secret string) string
}

// tokenIssuer makes tokens. [issuer.Issuer] is the one in use.
type tokenIssuer interface {
	// Issue makes the tokens, has req.Store store them, and returns them only if that succeeded.
	Issue(ctx context.Context, req issuer.Request) (access, refresh string, err error)
}

// Store is everything that a [Service] keeps.
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

// Options configure a [Service]. Issuer, Clients, Store, Signer and Deriver are required; every other
// zero value means the default that is named beside it.
type Options struct {
	Issuer    string // aud of access tokens if the client has none of its own
	Clients   Clients
	Store     Store
	Signer    Signer
	Passwords *secret.Passwords // secret.NewPasswords(secret.PasswordOptions{})

	Now    func() time.Time // time.Now; of what is issued and expires
	Logger *slog.Logger     // discards
	// LogUser returns what stands for a user in a line of the log. Nil: users are left out.
	LogUser func(username string) slog.Attr

	CodeLifetime         time.Duration // 2m
	AccessTokenLifetime  time.Duration // 1h; keys.Options.TokenLifetime must not be shorter
	RefreshTokenLifetime time.Duration // 30 days, counted anew for each successor
	RefreshMaxAge        time.Duration // 90 days: the end of every refresh token, counted from the sign-in
	SessionLifetime      time.Duration // 12h
	SessionsPerUser      int           // 20; one more ends the oldest
	// CodesPerSession is how many codes a session gets within the lifetime of a code: 120. It may answer ten
	// times as many consent pages, those that were answered before included.
	CodesPerSession int64

	// RefreshGrace is how long a refresh token that was used is answered with the same successor
	// again, if that has not been used. 0: never.
	RefreshGrace time.Duration
	// Deriver authenticates codes and refresh tokens, and derives what usernames and addresses are stored as
	// when passwords are wrong.
	Deriver Deriver

	// Counters and Policies make the limiter; without both nothing is limited. Clock is the time of
	// all counts, Now if it is nil; see package clock.
	Clock    func() time.Time
	Counters *ratelimit.Counters
	Policies func() *clientcfg.PolicySnapshot // the current ones, without I/O
	Bans     *bans.Bans                       // nil: nobody is banned, whatever the policies say
	// Observe is called with every decision of the limiter, before the answer is made, with the
	// context of the request. It must not block. Nil disables it.
	Observe func(context.Context, judgement.Decided)

	// Gate refuses requests while the server is overloaded. Nil: none is refused for that.
	Gate Gate

	// Issued is called with every access token that was issued, and with none that is handed out again.
	// It must not block. Nil disables it.
	Issued func(Issued)

	// SecretUsed is called with each use of a client's secret. It must not block. Nil disables it.
	SecretUsed func(clientID string, d secret.Digest, at time.Time)

	// ClientFailures limit failed client authentications: 300 a minute from an address, 60 with the
	// same client_id.
	ClientFailures FailureLimits
	// SignInFailures limit wrong passwords: 100 a minute from an address, 20 with the same
	// username. Over the limit no password is hashed.
	SignInFailures FailureLimits
	// InvalidGrants limit codes and refresh tokens that are not valid: 6000 a minute from an address,
	// 3000 with the same client_id, so many because the users of a web application, all of whose
	// tokens may end at once, have one address. Over the limit none is looked up.
	InvalidGrants FailureLimits
	// Introspections and Revocations limit the requests of one client to those endpoints: 600 and 100
	// a second, over ten seconds.
	Introspections, Revocations ratelimit.Limit
	// SignIns limits right passwords of one username from one address: 120 a minute. Over the limit no
	// password is hashed either.
	SignIns ratelimit.Limit
	// Guesses limit wrong passwords over a day: 200 of one username from one address, 100 in a row of
	// one username, and then an attempt in 30 seconds.
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
	if o.Gate == nil {
		o.Gate = open{}
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

// QueryLimit returns the limit of that many requests a second, over ten seconds: callers come in
// bursts.
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

// Service is the OAuth protocol without HTTP. It is safe for concurrent use.
type Service struct {
	opts   Options
	store  Store
	issuer tokenIssuer

	clientFailures failures
	signIns        signIns
	guesses        *guesses

	invalidGrants               *meter
	introspections, revocations *meter
	replayLines                 *meter // one a minute for each family
	consents                    *meter // by session

	limiter *judgement.Judge // nil: nothing is limited
	last    *reuseTables
	recent  *recentTokens
}

// New makes a Service. Its error joins everything that is wrong with the options.
func New(opts Options) (*Service, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	s := &Service{opts: opts, store: opts.Store, issuer: issuer.New(opts.Signer), last: newReuseTables(opts.Now()), recent: newRecentTokens(opts.Now())}
	if opts.Counters != nil {
		s.limiter = judgement.New(judgement.Options{
			Counters: opts.Counters, Policies: opts.Policies, Clock: opts.Clock, Bans: opts.Bans, Observe: opts.Observe,
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
	line.Frames = ratelimit.MaxFrames // with one, the next line could come with the next frame
	s.replayLines, err = newMeter(proven, line, line)
	return err
}
