package grants

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants/issuer"
	"oauth-server/internal/keys"
	"oauth-server/internal/limiter"
	"oauth-server/internal/limiter/attempts"
	"oauth-server/internal/overload"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
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

// Options configure a [Service]. All fields up to Deriver are required. Any other zero
// value means the default noted beside the field.
type Options struct {
	Issuer  string // aud of access tokens if the client has no audience of its own
	Clients Clients
	Store   *Repository
	Users   *accounts.Users
	Stored  clientcfg.ClientReader // the clients in the store
	Signer  Signer
	Deriver accounts.Deriver // authenticates codes and refresh tokens

	Now    func() time.Time // time.Now; for issue and expiry times
	Logger *slog.Logger     // discards
	// LogUser returns the log attribute for a user. If it is nil, logs do not mention users.
	LogUser func(username string) slog.Attr

	CodeLifetime         time.Duration // 2m
	AccessTokenLifetime  time.Duration // 1h; keys.Options.TokenLifetime must not be shorter
	RefreshTokenLifetime time.Duration // 30 days, counted anew from each refresh
	RefreshMaxAge        time.Duration // 90 days after sign-in, when every refresh token ends
	// CodesPerSession is how many codes a session gets within CodeLifetime. The default is 120. A
	// session may answer ten times as many consent pages, counting repeated answers.
	CodesPerSession int64

	// RefreshGrace is how long a used refresh token still returns the same successor, as long as
	// the successor is unused. 0 means never.
	RefreshGrace time.Duration

	// Counters and Policies make up the limiter. Without both, nothing is limited. Clock is the
	// time of all counts and defaults to Now; see package clock.
	Clock    func() time.Time
	Counters *counting.Counters
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
	ClientFailures attempts.Limits
	// InvalidGrants limits invalid codes and refresh tokens. The defaults are 6000 a minute from an
	// address, and 3000 of them with the same client_id. They are this high because all users of a
	// web application may share one address and lose their tokens at once. Over the limit nothing
	// is looked up.
	InvalidGrants attempts.Limits
	// SignIn has the passwords, sessions and limits of accounts. New sets the other fields from these
	// options.
	SignIn accounts.Options
	// Introspections and Revocations limit the requests of one client to those endpoints. The
	// defaults are 600 and 100 a second, over ten seconds.
	Introspections, Revocations ratelimit.Limit
}

func (o Options) withDefaults() Options {
	o.CodeLifetime = cmp.Or(o.CodeLifetime, 2*time.Minute)
	o.AccessTokenLifetime = cmp.Or(o.AccessTokenLifetime, time.Hour)
	o.RefreshTokenLifetime = cmp.Or(o.RefreshTokenLifetime, 30*24*time.Hour)
	o.RefreshMaxAge = cmp.Or(o.RefreshMaxAge, 90*24*time.Hour)
	o.CodesPerSession = cmp.Or(o.CodesPerSession, 120)
	o.ClientFailures = cmp.Or(o.ClientFailures, attempts.NewLimits(300, 60, time.Minute))
	o.InvalidGrants = cmp.Or(o.InvalidGrants, attempts.NewLimits(6000, 3000, time.Minute))
	o.Introspections = cmp.Or(o.Introspections, QueryLimit(600))
	o.Revocations = cmp.Or(o.Revocations, QueryLimit(100))
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Clock == nil {
		o.Clock = o.Now
	}
	if o.Shedder == nil {
		o.Shedder = overload.New(overload.Settings{Mode: ratelimit.Off}, nil)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.LogUser == nil {
		o.LogUser = func(string) slog.Attr { return slog.Attr{} }
	}
	return o
}

// QueryLimit returns a limit of perSecond requests a second, counted over ten seconds because
// callers send bursts.
func QueryLimit(perSecond int64) ratelimit.Limit {
	return ratelimit.NewLimit("per-client", 10*perSecond, 10*time.Second)
}

// Service implements the OAuth protocol without HTTP. It is safe for concurrent use.
type Service struct {
	opts     Options
	store    *Repository
	accounts *accounts.Service
	issuer   *issuer.Issuer

	clientFailures              attempts.Failures
	invalidGrants               *attempts.Meter
	introspections, revocations *attempts.Meter
	replayLines                 *attempts.Meter // one log line a minute for each family
	consents                    *attempts.Meter // per session

	limiter *limiter.Limiter // nil: nothing is limited
	last    *reuseTables
	recent  *recentTokens
}

// New makes a Service. It returns an error for an invalid limit.
func New(opts Options) (*Service, error) {
	opts = opts.withDefaults()
	s := &Service{opts: opts, store: opts.Store, issuer: issuer.New(opts.Signer), last: newReuseTables(opts.Now()), recent: newRecentTokens(opts.Now())}
	if opts.Counters != nil {
		s.limiter = limiter.New(limiter.Options{
			Counters: opts.Counters, Policies: func() limiter.Policies { return opts.Policies() }, Clock: opts.Clock, Bans: opts.Bans, Observe: opts.Observe,
		})
	}
	in := opts.SignIn
	in.Users, in.Records, in.Deriver, in.Logger = opts.Users, opts.Store.Repository, opts.Deriver, opts.Logger
	in.Now, in.Clock, in.Counters = opts.Now, opts.Clock, opts.Counters
	if in.Meters == nil {
		in.Meters = attempts.NewSet(opts.Clock(), attempts.DefaultKeys)
	}
	meters := in.Meters
	s.clientFailures = meters.Failures("failed client authentications", opts.ClientFailures)
	s.invalidGrants = meters.Meter("invalid codes and refresh tokens", opts.InvalidGrants.PerName, opts.InvalidGrants.PerAddress)
	s.introspections = meters.Meter("introspections", opts.Introspections, opts.Introspections)
	s.revocations = meters.Meter("revocations", opts.Revocations, opts.Revocations)
	s.consents = meters.Meter("codes",
		ratelimit.NewLimit("answers-per-session", min(answersPerCode*opts.CodesPerSession, ratelimit.MaxRequests), opts.CodeLifetime),
		ratelimit.NewLimit("codes-per-session", opts.CodesPerSession, opts.CodeLifetime))
	line := ratelimit.NewLimit("lines", 1, time.Minute)
	line.Frames = ratelimit.MaxFrames // with one frame, the start of the next frame would already allow another line
	s.replayLines = meters.Meter("log lines", line, line)
	var err error
	if s.accounts, err = accounts.New(in); err != nil { // of all meters
		return nil, err
	}
	return s, nil
}
