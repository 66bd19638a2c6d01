package accounts

import (
	"cmp"
	"errors"
	"log/slog"
	"time"

	"oauth-server/internal/limiter/attempts"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/secret"
)

// Deriver derives secrets with a key that all instances share. [keys.MAC] implements it.
type Deriver interface {
	// Derive returns 256 bits as 43 characters of base64url. They cannot be computed without the
	// key.
	Derive(purpose, secret string) string
}

// Options configure a [Service]. Users, Records and Deriver are required. Any other zero value means
// the default noted beside the field.
type Options struct {
	Users     *Users
	Records   *Repository
	Passwords *secret.Passwords // secret.NewPasswords(secret.PasswordOptions{})
	// Deriver hides the usernames and addresses that are stored after wrong passwords.
	Deriver Deriver

	Now    func() time.Time // time.Now; for times that are stored
	Clock  func() time.Time // Now; for counts
	Logger *slog.Logger     // discards

	SessionLifetime time.Duration // 12h
	SessionsPerUser int           // 20; one more ends the oldest

	// Failures limit wrong passwords. The defaults are 100 a minute from an address, and 20 of them
	// with the same username. Over the limit no password is hashed.
	Failures attempts.Limits
	// SignIns limits correct passwords for one username from one address. The default is 120 a
	// minute. Over the limit no password is hashed either.
	SignIns ratelimit.Limit
	// Guesses limits wrong passwords over a day. The defaults are 200 for one username from one
	// address, and 100 in a row for one username. After that, one attempt every 30 seconds is
	// allowed.
	Guesses GuessLimits
	// Meters makes the meters of these limits. The default is a Set of its own.
	Meters *attempts.Set
	// Counters count the guesses of all instances together. The default counts for this instance.
	Counters *counting.Counters
}

func (o Options) withDefaults() Options {
	o.SessionLifetime = cmp.Or(o.SessionLifetime, 12*time.Hour)
	o.SessionsPerUser = cmp.Or(o.SessionsPerUser, 20)
	o.Failures = cmp.Or(o.Failures, attempts.NewLimits(100, 20, time.Minute))
	if o.SignIns == (ratelimit.Limit{}) {
		o.SignIns = ratelimit.NewLimit("sign-ins", 120, time.Minute)
	}
	if o.Guesses == (GuessLimits{}) {
		o.Guesses = NewGuessLimits(200, 100)
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
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Counters == nil {
		o.Counters = counting.NewCounters(attempts.DefaultKeys)
	}
	if o.Meters == nil {
		o.Meters = attempts.NewSet(o.Clock(), attempts.DefaultKeys)
	}
	return o
}

// Service signs users in. It is safe for concurrent use.
type Service struct {
	Options

	failures       attempts.Failures
	successes      *attempts.Meter
	day, row, slow *ratelimit.Effective // of guesses
}

// New makes a Service. Its error says what is wrong with the options.
func New(opts Options) (*Service, error) {
	s := &Service{Options: opts.withDefaults()}
	if s.Users == nil || s.Records == nil || s.Deriver == nil {
		return nil, errors.New("accounts: Users, Records and Deriver are required")
	}
	if s.SessionLifetime < time.Second || s.SessionsPerUser < 1 {
		return nil, errors.New("accounts: sessions must be at least one per user and one second long")
	}
	meters := s.Meters
	s.failures = meters.Failures("wrong passwords", s.Failures)
	s.successes = meters.Meter("right passwords", s.SignIns, s.SignIns)
	s.day = meters.Limits("guesses of a day", s.Guesses.PerName, s.Guesses.PerName)
	s.row = meters.Limits("guesses in a row", s.Guesses.PerUser, s.Guesses.PerUser)
	s.slow = meters.Limits("attempts slowed down", s.Guesses.SlowDown, s.Guesses.SlowDown)
	if err := meters.Err(); err != nil {
		return nil, err
	}
	return s, nil
}
